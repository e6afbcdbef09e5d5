"""Files of other tools: robots in."""

from sharnir.io.urdf import load_urdf

__all__ = ["load_urdf"]
