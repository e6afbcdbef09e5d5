"""Named inputs of a machine, as its `inputs()` gives them; they are those of any scene (`sharnir.scene.inputs`)."""

from typing import Any

from sharnir.core.renamed import warn_renamed
from sharnir.scene.inputs import Input, Inputs

__all__ = ["Input", "Inputs"]


def __getattr__(name: str) -> Any:
    if name == "Controls":
        warn_renamed("sharnir.machine_models.inputs.Controls", "Inputs")
        return Inputs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
