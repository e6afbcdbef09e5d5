"""Named inputs of a machine, as its `inputs()` gives them; they are those of any scene (`sharnir.scene.inputs`)."""

from sharnir.scene.inputs import Controls, Input

__all__ = ["Controls", "Input"]
