"""Files: scenes in and out, and what other tools write."""

from sharnir.io.mjcf import load_mjcf
from sharnir.io.scene_file import load_scene
from sharnir.io.urdf import load_urdf

__all__ = ["load_mjcf", "load_scene", "load_urdf"]
