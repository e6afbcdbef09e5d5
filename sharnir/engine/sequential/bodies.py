"""Kernels of sequential steps of free bodies: the same as of mechanisms, without joints, links, drives, ropes and raycast wheels.

Most scenes with contact are such, and their kernels compile in a fraction of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sharnir.core.trimming import Absent
from sharnir.core.types import copied, trimmed_module
from sharnir.engine.sequential import begin, patches, sweeps
from sharnir.model.model import Model

BODY_MODULE = "sharnir.bodies"
ROUND_SHAPES = {"plane", "sphere", "capsule", "box"}
ABSENT_COUNTS = ("joints.count", "gears.count", "springs.count", "cables.count", "drives.count", "casts.count", "ropes", "speeds")
ABSENT_ARRAYS = ("joined_a.shape", "drive_state.shape", "drive_command.shape", "felt_joint.shape", "current.shape")
trimmed_module(BODY_MODULE, Absent(zeros=(*ABSENT_COUNTS, *ABSENT_ARRAYS)))


@dataclass(frozen=True)
class Kernels:
    """Those of a step with contact, but for the rows of joints and links."""

    predict: Any
    show: Any
    prepare_points: Any
    sweeps: Any

    @property
    def module(self) -> Any:
        """Their Warp module, if it is one."""
        return self.sweeps.module


ALL_KERNELS = Kernels(begin.predict, begin.show, patches.prepare_points, sweeps.sweeps_touching)
BODY_KERNELS = Kernels(
    predict=copied(begin.predict, BODY_MODULE),
    show=copied(begin.show, BODY_MODULE),
    prepare_points=copied(patches.prepare_points, BODY_MODULE),
    sweeps=sweeps.sweeping(False, True, BODY_MODULE),
)


def are_free(model: Model) -> bool:
    """Whether a model has contacts of plain shapes, and nothing that joins or drives bodies."""
    if model.collision is None or not {shape.part.kind for shape in model.collision.shapes} <= ROUND_SHAPES:
        return False
    if model.ropes is not None or model.casts or len(model.ties()):
        return False
    linked = len(model.joint_kinds) + len(model.gear_names) + len(model.spring_names) + int(model.cables.count)
    return not linked and not int(model.drives.count)
