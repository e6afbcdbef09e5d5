"""Named inputs of a machine, as its `inputs()` gives them; they are those of any scene (`sharnir.scene.inputs`)."""

from sharnir.scene.inputs import Input, Inputs

__all__ = ["Input", "Inputs"]
