"""Steps that many label sets share, and findings that outlive an interruption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, UNARGMAXABLE, Audit, OutputLayer, audit, audit_classes, search, winners
from longtail.audit.planes import lengths_to_all
from longtail.audit.winners import Classes
from longtail.progress import listening


def grouped(n_labels: int, d: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_labels // 10, d))
    W = centres[rng.integers(0, len(centres), n_labels)] + 0.5 * rng.normal(size=(n_labels, d))
    return np.asarray(W * np.exp(0.4 * rng.normal(size=(n_labels, 1))))


def same(first: Audit, second: Audit) -> bool:
    assert first.witnesses is not None
    assert second.witnesses is not None
    proofs = zip(first.certificates, second.certificates, strict=True)
    return (
        first.verdicts.tobytes() == second.verdicts.tobytes()
        and first.witnesses.tobytes() == second.witnesses.tobytes()
        and first.radii.tobytes() == second.radii.tobytes()
        and all(a is b or np.array_equal(a.weights, b.weights) for a, b in proofs if a is not None or b is not None)
    )


@pytest.mark.parametrize("biased", [False, True])
def test_classes_decided_together_have_the_verdicts_of_classes_decided_alone(biased: bool) -> None:
    W = grouped(200, 6)
    bias = np.random.default_rng(1).normal(size=200) if biased else None
    found = audit_classes(W, bias)
    alone = [int(audit_classes(W, bias, [label]).verdicts[0]) for label in range(200)]
    assert found.verdicts.tolist() == alone
    assert found.count(ARGMAXABLE) > 20
    assert found.count(UNARGMAXABLE) > 20
    assert found.recheck().all()


def test_a_model_with_a_rule_for_ties_has_the_same_classes_that_never_win() -> None:
    W = grouped(200, 6)
    found = audit(OutputLayer.of(W, rule="topk", at_least=False), [[label] for label in range(200)])
    assert found.verdicts.tolist() == audit_classes(W).verdicts.tolist()
    assert "weights" in found.methods
    assert found.recheck().all()


def test_a_class_that_wins_in_float32_only_is_compared_in_float64() -> None:
    W = np.array([[1.0, 0.0], [1.0 + 1e-9, 0.0], [0.0, 1.0]])
    classes = Classes.of(OutputLayer.of(W, rule="topk"))
    assert classes is not None
    assert [each.tolist() for each in classes.rivals(np.arange(3), W)] == [[1], [0], []]
    assert not classes.beats(0, np.array([1]), W[0])[0]
    assert classes.beats(1, np.array([0]), W[1])[0]


def test_float32_never_overlooks_a_rival(rng: np.random.Generator) -> None:
    W, bias = grouped(300, 40), rng.normal(size=300)
    classes = Classes.of(OutputLayer.of(1e-30 * W, 1e-30 * bias, rule="topk"))
    assert classes is not None
    inputs = rng.normal(size=(300, 40))
    scores = inputs @ W.T + bias
    for label, rivals in enumerate(classes.rivals(np.arange(300), inputs)):
        above = np.flatnonzero(scores[label] > scores[label, label])
        assert np.isin(above, rivals).all() if len(above) < 60 else len(rivals) >= 60


@pytest.mark.parametrize("rule", ["predict", "classes"])
def test_no_proof_depends_on_the_number_of_threads(rule: str) -> None:
    W = grouped(400, 12)
    sets = [np.random.default_rng(seed).choice(400, 3, replace=False).tolist() for seed in range(60)]

    def run(n_jobs: int) -> Audit:
        if rule == "classes":
            return audit_classes(W, n_jobs=n_jobs)
        return audit(W, sets, np.full(400, -1.0), n_jobs=n_jobs)

    assert same(run(1), run(3))


def test_in_wide_layers_one_proof_rules_out_many_sets() -> None:
    W = np.random.default_rng(0).normal(size=(700, 200))
    found = audit(W, [[label, label + 1] for label in range(0, 64, 2)])
    assert found.count(UNARGMAXABLE) == 32
    assert len({id(certificate) for certificate in found.certificates}) <= 2
    assert found.recheck().all()


def test_lengths_of_differences_are_right_for_rows_that_nearly_agree() -> None:
    W = np.array([[1.0, 0.0], [1.0, 1e-9], [0.0, 2.0]])
    found = lengths_to_all(OutputLayer.of(W), np.arange(3))
    assert found == pytest.approx(np.linalg.norm(W[:, None] - W[None], axis=2), rel=1e-12)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("rule", ["predict", "topk"])
def test_an_interrupted_audit_goes_on_where_it_stopped(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    W = grouped(120, 8)
    sets = [[label] if rule == "topk" else [label, (7 * label + 3) % 120] for label in range(120)]

    def run(resume: Path | None) -> Audit:
        return audit(W, sets, rule=rule, n_jobs=1, resume=resume)

    expected = run(None)
    target = winners if rule == "topk" else search.Search
    calls: list[int] = []
    work = target._decide_block  # type: ignore[attr-defined]

    def counted(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 4:
            raise Interrupted
        return work(*arguments)

    monkeypatch.setattr(target, "_decide_block", counted)
    with pytest.raises(Interrupted):
        run(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    assert same(run(tmp_path), expected)
    monkeypatch.setattr(target, "_decide_block", lambda *arguments: pytest.fail("a kept block was computed again"))
    assert same(run(tmp_path), expected)


def test_a_damaged_file_of_findings_is_computed_again(tmp_path: Path) -> None:
    W, sets = grouped(60, 4), [[label] for label in range(40)]
    expected = audit(W, sets, resume=tmp_path)
    paths = sorted(tmp_path.iterdir())
    content = bytearray(paths[0].read_bytes())
    content[-3] ^= 1
    paths[0].write_bytes(content)
    paths[1].write_bytes(b"")
    assert same(audit(W, sets, resume=tmp_path), expected)
    assert bytes(content) != paths[0].read_bytes()
    assert paths[1].stat().st_size > 0


def test_findings_of_other_weights_sets_or_options_are_never_taken(tmp_path: Path) -> None:
    W, sets = grouped(60, 4), [[label] for label in range(20)]
    audit(W, sets, resume=tmp_path)
    count = len(list(tmp_path.iterdir()))
    others = ((W + 1e-9, sets, {}), (W, sets[::-1], {}), (W, sets, {"tolerance": 1e-11}), (W, sets, {"bias": -1.0}))
    for number, (weights, asked, options) in enumerate(others, 2):
        found = audit(weights, asked, resume=tmp_path, **options)
        assert same(found, audit(weights, asked, **options))
        assert len(list(tmp_path.iterdir())) == number * count


def test_progress_counts_every_set_once() -> None:
    class Counter:
        total: int | None = None
        done = 0

        def __enter__(self) -> Counter:
            return self

        def __exit__(self, *problem: object) -> None:
            pass

        def __call__(self, amount: int, note: str = "") -> None:
            self.done += amount

    for layer in (OutputLayer.of(grouped(90, 5), rule="topk"), OutputLayer.of(grouped(90, 5), at_least=False)):
        counter = Counter()

        def listen(description: str, total: int | None, counter: Counter = counter) -> Counter:
            counter.total = total
            return counter

        with listening(listen):
            audit(layer, [[label] for label in range(90)])
        assert counter.total == counter.done == 90
