"""sharnir: real-time dynamics of jointed bodies and ropes.

Names are imported when they are first used: `import sharnir` alone takes no time.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sharnir import control as control
    from sharnir import dynamics as dynamics
    from sharnir import gym as gym
    from sharnir import sensors as sensors
    from sharnir import terrain as terrain
    from sharnir.axes import (
        Battery,
        Cardan,
        DCMotor,
        Engine,
        Friction,
        HydraulicCylinder,
        Limit,
        Motor,
        Servo,
        SwingTwist,
    )
    from sharnir.cable_tables import Drum, Sheave
    from sharnir.collision.material import Material
    from sharnir.compare import Comparison, compare
    from sharnir.direct.solver import SolverDirect
    from sharnir.errors import (
        ArgumentError,
        DivergenceError,
        SceneError,
        SceneFileError,
        SceneWarning,
        SimulationError,
        StepWarning,
    )
    from sharnir.health import Health
    from sharnir.io import load_mjcf, load_scene, load_urdf
    from sharnir.io.meshes import Surface
    from sharnir.io.recorded import Recording
    from sharnir.joints import (
        Cylindrical,
        Distance,
        Fixed,
        Free,
        Gear,
        Joint,
        Planar,
        PointOnLine,
        Prismatic,
        Revolute,
        Spherical,
        Universal,
    )
    from sharnir.machines.tracks import Track
    from sharnir.machines.wheels import Steering, Suspension, Tyre, Wheel
    from sharnir.measures import Energy, Momentum
    from sharnir.model import Control, Model, State
    from sharnir.realtime.loop import RealTime
    from sharnir.scene import Scene
    from sharnir.sequential.solver import SolverImpulse
    from sharnir.shapes import Box, Capsule, Compound, Cone, Cylinder, Ellipsoid, Mesh, PointMass, Shape, Sphere
    from sharnir.simulation import Simulation
    from sharnir.solver import Report
    from sharnir.spatial import about, rpy
    from sharnir.split import SplitSimulation
    from sharnir.sweeps.fitting import Fit, fit
    from sharnir.sweeps.result import SweepResult
    from sharnir.sweeps.run import sweep
    from sharnir.touching import ContactPoints

__version__ = "0.2.0"

__all__ = [
    "ArgumentError",
    "Battery",
    "Box",
    "Capsule",
    "Cardan",
    "Comparison",
    "Compound",
    "Cone",
    "ContactPoints",
    "Control",
    "Cylinder",
    "Cylindrical",
    "DCMotor",
    "Distance",
    "DivergenceError",
    "Drum",
    "Ellipsoid",
    "Energy",
    "Engine",
    "Fit",
    "Fixed",
    "Free",
    "Friction",
    "Gear",
    "Health",
    "HydraulicCylinder",
    "Joint",
    "Limit",
    "Material",
    "Mesh",
    "Model",
    "Momentum",
    "Motor",
    "Planar",
    "PointMass",
    "PointOnLine",
    "Prismatic",
    "RealTime",
    "Recording",
    "Report",
    "Revolute",
    "Scene",
    "SceneError",
    "SceneFileError",
    "SceneWarning",
    "Servo",
    "Shape",
    "Sheave",
    "Simulation",
    "SimulationError",
    "SolverDirect",
    "SolverImpulse",
    "Sphere",
    "Spherical",
    "SplitSimulation",
    "State",
    "Steering",
    "StepWarning",
    "Surface",
    "Suspension",
    "SweepResult",
    "SwingTwist",
    "Track",
    "Tyre",
    "Universal",
    "Wheel",
    "about",
    "compare",
    "control",
    "dynamics",
    "fit",
    "gym",
    "load_mjcf",
    "load_scene",
    "load_urdf",
    "rpy",
    "sensors",
    "sweep",
    "terrain",
]

_WHERE = {
    "sharnir.axes": "Battery Cardan DCMotor Engine Friction HydraulicCylinder Limit Motor Servo SwingTwist",
    "sharnir.cable_tables": "Drum Sheave",
    "sharnir.collision.material": "Material",
    "sharnir.compare": "Comparison compare",
    "sharnir.direct.solver": "SolverDirect",
    "sharnir.errors": "ArgumentError DivergenceError SceneError SceneFileError SceneWarning SimulationError StepWarning",
    "sharnir.health": "Health",
    "sharnir.io": "load_mjcf load_scene load_urdf",
    "sharnir.io.recorded": "Recording",
    "sharnir.joints": "Cylindrical Distance Fixed Free Gear Joint Planar PointOnLine Prismatic Revolute Spherical Universal",
    "sharnir.machines.tracks": "Track",
    "sharnir.machines.wheels": "Steering Suspension Tyre Wheel",
    "sharnir.measures": "Energy Momentum",
    "sharnir.model": "Control Model State",
    "sharnir.realtime.loop": "RealTime",
    "sharnir.scene": "Scene",
    "sharnir.sequential.solver": "SolverImpulse",
    "sharnir.io.meshes": "Surface",
    "sharnir.shapes": "Box Capsule Compound Cone Cylinder Ellipsoid Mesh PointMass Shape Sphere",
    "sharnir.simulation": "Simulation",
    "sharnir.split": "SplitSimulation",
    "sharnir.solver": "Report",
    "sharnir.spatial": "about rpy",
    "sharnir.sweeps.fitting": "Fit fit",
    "sharnir.sweeps.result": "SweepResult",
    "sharnir.sweeps.run": "sweep",
    "sharnir.touching": "ContactPoints",
}
_REMOVED = {"SolverArticulated": "removed in 0.3.0: it was the direct solver; use SolverDirect, or Simulation(solver='direct')"}
_MODULES = ("control", "dynamics", "gym", "sensors", "terrain")
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}


if not TYPE_CHECKING:  # or every word would be right

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        elif name in _MODULES:
            value = importlib.import_module(f"sharnir.{name}")
        elif name in _REMOVED:
            raise AttributeError(f"sharnir.{name} was {_REMOVED[name]}")
        else:
            raise AttributeError(f"module 'sharnir' has no attribute {name!r}; known: {', '.join(__all__)}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Package(ModuleType):
    """`sh.compare` is the function, also after somebody imported the module of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.compare if name == "compare" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package
