"""`LearnerOptions`: what to train, as far as it is decided."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from longtail.errors import InvalidInput
from longtail.estimator import Estimator
from longtail.labels import LabelHierarchy
from longtail.parameters import Number

NETWORK = "network"
_SEED = Number(low=0, high=2**31, whole=True)
_LINEAR = ("tree", "one-vs-rest", "ridge")
LEARNERS = ("auto", *_LINEAR, NETWORK)
_TREES = ("tree", "one-vs-rest")
# Parameters whose values decide which learners have them.
_BY_VALUE: dict[str, dict[str, tuple[str, ...]]] = {
    "weighting": {"loss": (*_LINEAR, NETWORK), "target": ("ridge",), "score": _TREES},
    "loss": {"squared_hinge": _TREES, "logistic": _TREES}
    | dict.fromkeys(("product", "stages", "binary", "softmax"), (NETWORK,)),
}
# The parameters of networks that learn from labels of groups.
_OF_GROUPS = ("width", "epochs", "batch_size", "learning_rate", "dropout")
# What networks whose encoder is trained do not have: their texts have no vectors to keep, and no layers of their own.
_NOT_TUNED = ("encoder_cache", "width", "dropout")
# Parameters that only some heads of networks have.
_OF_HEADS = {
    "head_width": ("bottleneck", "cascade"),
    "active": ("dft",),
    "slack": ("dft",),
    "products": ("product", "kronecker"),
    "sampled": ("sampling",),
    "own_blocks": ("sampling",),
    "margin": ("sampling",),
    "sparse_gradients": ("cascade", "sampling"),
}
_OF_LOSSES = {"product": "cascade", "stages": "cascade", "binary": "product", "softmax": "product"}


def _of(*learners: str) -> Any:
    """A parameter that only these learners have; None leaves it to them."""
    return field(default=None, metadata={"learners": learners})


@dataclass(frozen=True)
class LearnerOptions:
    """What to train, as far as it is decided; the data decide the rest.

    A parameter that is None is left to the learner. A parameter that only some learners have restricts the choice to
    them. Parameters have the names and meanings of those of the learners.

    Parameters
    ----------
    learner : {"auto", "tree", "one-vs-rest", "ridge", "network"}
    taxonomy : str or None
        A file of lines ``child TAB parent``, used as the label tree.
    missing : {"error", "root", "drop"} or None
        What to do with labels that are not in the taxonomy; None means error.
    fast : bool
        Train one stage only. `fast`, `patience` and, without ``learner="network"``, `encoder` cannot be combined with
        parameters of learners, and have no effect with fewer than 1,000 rows.
    patience : float or None
        Seconds that training may take when learners race, by an estimate. None is about 12 times as long as one label
        tree takes, at least 50 seconds of processor time, plus the second stage.
    encoder : str or None
        The folder of a pretrained sentence encoder. The second stage uses its vectors if they help, and a network
        always does. "auto" uses the installed encoder if the texts are short or few, and encoding fits into time and
        memory. None uses none.
    fine_tune : bool or None
        Of a network with an `encoder`: read texts with the encoder alone, and train its weights, too.
    encoder_learning_rate : float or None
        Learning rate of an encoder that is trained; `learning_rate` is that of the rest of the network.
    encoder_cache : str or None
        A folder where the vectors of texts are kept, so that no text is encoded twice.
    max_tokens : int or None
        Of a network with an `encoder`: further tokens of a text are dropped. None is 128, or 64 with `fine_tune`.

    Examples
    --------
    >>> LearnerOptions(C=2.0).candidates()
    (['tree', 'one-vs-rest'], None)
    >>> LearnerOptions(n_trees=3).candidates()
    (['tree'], 'n_trees is given')
    """

    learner: str = "auto"
    n_trees: int | None = _of("tree")
    leaf_size: int | None = _of("tree")
    branching: int | None = _of("tree")
    beam: int | None = _of("tree")
    negatives: str | None = _of("tree")
    hierarchy: LabelHierarchy | None = field(default=None, metadata={"learners": ("tree",)})
    taxonomy: str | None = _of("tree")
    missing: str | None = _of("tree")
    loss: str | None = _of(*_TREES, NETWORK)
    C: float | None = _of(*_TREES)
    prune: float | None = _of(*_LINEAR)
    alpha: float | None = _of("ridge")
    solver: str | None = _of("ridge")
    fit_intercept: bool | None = _of("ridge")
    density: float | None = _of("ridge")
    updatable: bool | None = _of("ridge")
    weighting: str | None = _of(*_LINEAR, NETWORK)
    head: str | None = _of(NETWORK)
    n_heads: int | None = _of(NETWORK)
    products: int | None = _of(NETWORK)
    task: str | None = _of(NETWORK)
    sampled: int | None = _of(NETWORK)
    own_blocks: bool | None = _of(NETWORK)
    margin: float | None = _of(NETWORK)
    sparse_gradients: bool | None = _of(NETWORK)
    width: int | None = _of(NETWORK)
    head_width: int | None = _of(NETWORK)
    active: int | None = _of(NETWORK)
    slack: int | None = _of(NETWORK)
    epochs: int | None = _of(NETWORK)
    batch_size: int | None = _of(NETWORK)
    learning_rate: float | None = _of(NETWORK)
    dropout: float | None = _of(NETWORK)
    n_networks: int | None = _of(NETWORK)
    checkpoint: str | None = _of(NETWORK)
    fine_tune: bool | None = _of(NETWORK)
    encoder_learning_rate: float | None = _of(NETWORK)
    fast: bool = False
    patience: float | None = None
    encoder: str | None = None
    encoder_cache: str | None = None
    max_tokens: int | None = None
    random_state: int = 0
    n_jobs: int | None = None

    def given(self) -> dict[str, Any]:
        """The parameters of learners that are set, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.metadata}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def candidates(self, spell: Callable[[str], str] = str) -> tuple[list[str], str | None]:
        """The learners that have all the given parameters and, where that leaves one, what decided.

        Parameters
        ----------
        spell : callable
            How to write the name of a parameter in an error message.

        Raises
        ------
        InvalidInput
            With code ``conflicting_parameters`` where no learner has all of them.
        """
        if self.learner not in LEARNERS:
            raise InvalidInput(f"learner is {self.learner!r}; expected one of {', '.join(map(repr, LEARNERS))}")
        if self.missing is not None and self.taxonomy is None:
            message = f"{spell('missing')} needs {spell('taxonomy')}"
            raise InvalidInput(message, code="conflicting_parameters", name="missing")
        self._check_race(spell)
        self._check_encoder(spell)
        self._check_head(spell)
        if self.density is not None and self.prune is not None:
            message = f"{spell('density')} and {spell('prune')} exclude each other"
            raise InvalidInput(message, code="conflicting_parameters", name="density")
        left = list(_LINEAR) if self.learner == "auto" else [self.learner]
        why = None if self.learner == "auto" else "requested"
        decided = f"{spell('learner')} {self.learner}"
        for name, value in self.given().items():
            owners = learners_taking(name, value)
            spelled = f"{spell(name)} {value}" if name in _BY_VALUE else spell(name)
            fitting = [learner for learner in left if learner in owners]
            if not fitting:
                message = f"{spelled} is for {' and '.join(owners)}; it does not go with {decided}"
                raise InvalidInput(message, code="conflicting_parameters", name=name)
            if len(fitting) < len(left):
                decided = spelled
                why = f"{name} is given" if len(fitting) == 1 else why
            left = fitting
        return left, why

    def check_groups(self, spell: Callable[[str], str] = str) -> None:
        """Refuse parameters of networks that learn from labels of rows, for labels of groups."""
        for name in self.given() if self.learner == NETWORK else ():
            if name not in _OF_GROUPS:
                message = (
                    f"{spell(name)} is for labels of rows; a network for labels of groups has only "
                    f"{', '.join(map(spell, _OF_GROUPS))}"
                )
                raise InvalidInput(message, code="conflicting_parameters", name=name)

    def for_race(self) -> list[str]:
        """The names of those of `fast`, `patience` and `encoder` that are set and matter only if learners race."""
        has_encoder = self.encoder is not None and self.learner != NETWORK
        given = {"fast": self.fast, "patience": self.patience is not None, "encoder": has_encoder}
        return [name for name, is_given in given.items() if is_given]

    def _check_race(self, spell: Callable[[str], str]) -> None:
        for name in self.for_race():
            if self.learner != "auto":
                which = f"auto or {NETWORK}" if name == "encoder" else "auto"
                message = f"{spell(name)} goes with {spell('learner')} {which} only"
                raise InvalidInput(message, code="conflicting_parameters", name=name)
            for rival, value in self.given().items():
                if name == "encoder" and learners_taking(rival, value) == (NETWORK,):
                    continue  # what is missing is the learner
                message = f"{spell(name)} is for the race of learners; it does not go with {spell(rival)}"
                raise InvalidInput(message, code="conflicting_parameters", name=name)
        if self.patience is not None and not Number(above=0).accepts(self.patience):
            raise InvalidInput(f"{spell('patience')} is {self.patience!r}; expected a number of seconds above 0")
        if not _SEED.accepts(self.random_state):
            raise InvalidInput(f"{spell('random_state')} is {self.random_state!r}; expected {_SEED.describe()}")

    def _check_head(self, spell: Callable[[str], str]) -> None:
        head, given = self.head or ("one-hot" if self.fine_tune else "cascade"), self.given()
        for name, heads in _OF_HEADS.items():
            if name in given and head not in heads:
                message = f"{spell(name)} needs {spell('head')} {' or '.join(heads)}"
                raise InvalidInput(message, code="conflicting_parameters", name=name)
        if self.learner == NETWORK and _OF_LOSSES.get(self.loss or "", head) != head:
            message = f"{spell('loss')} {self.loss} needs {spell('head')} {_OF_LOSSES[str(self.loss)]}"
            raise InvalidInput(message, code="conflicting_parameters", name="loss")

    def _check_encoder(self, spell: Callable[[str], str]) -> None:
        if self.encoder_cache is not None and self.encoder is None:
            message = f"{spell('encoder_cache')} needs {spell('encoder')}"
            raise InvalidInput(message, code="conflicting_parameters", name="encoder_cache")
        if self.fine_tune and self.encoder is None:
            message = f"{spell('fine_tune')} needs {spell('encoder')}"
            raise InvalidInput(message, code="conflicting_parameters", name="fine_tune")
        if self.encoder_learning_rate is not None and not self.fine_tune:
            message = f"{spell('encoder_learning_rate')} needs {spell('fine_tune')}"
            raise InvalidInput(message, code="conflicting_parameters", name="encoder_learning_rate")
        if self.max_tokens is not None and (self.encoder is None or self.learner != NETWORK):
            message = f"{spell('max_tokens')} needs {spell('encoder')} and {spell('learner')} {NETWORK}"
            raise InvalidInput(message, code="conflicting_parameters", name="max_tokens")
        if self.fine_tune:
            for name in _NOT_TUNED:
                if getattr(self, name) is not None:
                    message = f"{spell(name)} does not go with {spell('fine_tune')}"
                    raise InvalidInput(message, code="conflicting_parameters", name=name)
        if self.encoder is not None and self.fast:
            message = f"{spell('encoder')} is for two stages; it does not go with {spell('fast')}"
            raise InvalidInput(message, code="conflicting_parameters", name="encoder")


def learners_taking(parameter: str, value: Any) -> tuple[str, ...]:
    """The learners that have a parameter of `LearnerOptions` and accept the value.

    >>> learners_taking("C", 1.0)
    ('tree', 'one-vs-rest')
    >>> learners_taking("weighting", "target")
    ('ridge',)
    """
    if parameter in _BY_VALUE:
        known = _BY_VALUE[parameter]
        if value not in known:
            raise InvalidInput(f"{parameter} is {value!r}; expected one of None, {', '.join(map(repr, known))}")
        return known[value]
    owners = {each.name: each.metadata.get("learners", LEARNERS[1:]) for each in fields(LearnerOptions)}
    return owners[parameter]


def check_learner(estimator: Any, owner: str, of_groups: bool = False) -> None:
    """Refuse an estimator that could be trained on rows but not rank labels, such as those of other libraries.

    With `of_groups`, also take one that learns from labels of groups itself.
    """
    name = type(estimator).__name__
    if not isinstance(estimator, Estimator):
        raise InvalidInput(
            f"{owner}: the estimator is a {name}, not a longtail.estimator.Estimator; use a learner such as LabelTree, "
            "OneVsRest or Ridge, or None to have one chosen"
        )
    if of_groups and estimator.learns_from_groups:
        return
    if "groups" in inspect.signature(estimator.fit).parameters:
        raise InvalidInput(f"{owner}: the estimator is a {name}, which learns from groups; use a learner of rows")
