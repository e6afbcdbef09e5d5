"""sharnir: real-time dynamics of jointed bodies and ropes.

Names are imported when they are first used: `import sharnir` alone takes no time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sharnir import control as control
    from sharnir import dynamics as dynamics
    from sharnir import learn as gym
    from sharnir import optimize as optimize
    from sharnir import sensors as sensors
    from sharnir.collision.material import Material
    from sharnir.core.precision import set_precision
    from sharnir.core.spatial import about, rpy
    from sharnir.engine.base import Report
    from sharnir.engine.direct.solver import SolverDirect
    from sharnir.engine.sequential.solver import SolverSequential
    from sharnir.errors import (
        ArgumentError,
        DivergenceError,
        SceneError,
        SceneFileError,
        SceneWarning,
        SimulationError,
        StepWarning,
    )
    from sharnir.geometry import terrain
    from sharnir.geometry.shapes import Box, Capsule, Compound, Cone, Cylinder, Ellipsoid, Mesh, PointMass, Shape, Sphere
    from sharnir.io import load_mjcf, load_scene, load_urdf
    from sharnir.io.meshes import Surface
    from sharnir.io.record_reader import Recording
    from sharnir.machine_models.tracks import Track
    from sharnir.machine_models.wheels import Steering, Suspension, Tire, Tyre, Wheel
    from sharnir.model.actuators import (
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
    from sharnir.model.cable_tables import Drum, Sheave
    from sharnir.model.joint_types import (
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
    from sharnir.model.model import Control, Model, State
    from sharnir.runtime.contacts import ContactPoints
    from sharnir.runtime.health import Health
    from sharnir.runtime.measures import Energy, Momentum
    from sharnir.runtime.simulation import Simulation
    from sharnir.runtime.split import SplitSimulation
    from sharnir.runtime.tolerances import Tolerances
    from sharnir.scene.parts import Collider, Inertia, Rope, Visual
    from sharnir.scene.scene import Scene
    from sharnir.study.compare import Comparison, compare
    from sharnir.study.fitting import Fit, fit
    from sharnir.study.result import StudyResult
    from sharnir.study.rollout import Rollout, rollout
    from sharnir.study.run import run_study
    from sharnir.trainer.loop import RealTime

__version__ = "0.3.0"

__all__ = [
    "ArgumentError", "Battery", "Box", "Capsule", "Cardan", "Collider", "Comparison", "Compound", "Cone", "ContactPoints",
    "Control", "Cylinder", "Cylindrical", "DCMotor", "Distance", "DivergenceError", "Drum", "Ellipsoid", "Energy", "Engine",
    "Fit", "Fixed", "Free", "Friction", "Gear", "Health", "HydraulicCylinder", "Inertia", "Joint", "Limit", "Material", "Mesh",
    "Model", "Momentum", "Motor", "Planar", "PointMass", "PointOnLine", "Prismatic", "RealTime", "Recording", "Report",
    "Revolute", "Rollout", "Rope", "Scene", "SceneError", "SceneFileError", "SceneWarning", "Servo", "Shape", "Sheave",
    "Simulation", "SimulationError", "SolverDirect", "SolverSequential", "Sphere", "Spherical", "SplitSimulation", "State",
    "Steering", "StepWarning", "StudyResult", "Surface", "Suspension", "SwingTwist", "Tire", "Tolerances", "Track", "Tyre",
    "Universal", "Visual", "Wheel", "about", "compare", "control", "dynamics", "fit", "gym", "load_mjcf", "load_scene",
    "load_urdf", "optimize", "rollout", "rpy", "run_study", "sensors", "set_precision", "terrain",
]  # fmt: skip

_WHERE = {
    "sharnir.model.actuators": "Battery Cardan DCMotor Engine Friction HydraulicCylinder Limit Motor Servo SwingTwist",
    "sharnir.model.cable_tables": "Drum Sheave",
    "sharnir.collision.material": "Material",
    "sharnir.study.compare": "Comparison compare",
    "sharnir.engine.direct.solver": "SolverDirect",
    "sharnir.errors": "ArgumentError DivergenceError SceneError SceneFileError SceneWarning SimulationError StepWarning",
    "sharnir.runtime.health": "Health",
    "sharnir.io": "load_mjcf load_scene load_urdf",
    "sharnir.io.record_reader": "Recording",
    "sharnir.model.joint_types": "Cylindrical Distance Fixed Free Gear Joint Planar "
    "PointOnLine Prismatic Revolute Spherical Universal",
    "sharnir.machine_models.tracks": "Track",
    "sharnir.machine_models.wheels": "Steering Suspension Tire Tyre Wheel",
    "sharnir.runtime.measures": "Energy Momentum",
    "sharnir.model.model": "Control Model State",
    "sharnir.trainer.loop": "RealTime",
    "sharnir.scene.parts": "Collider Inertia Rope Visual",
    "sharnir.scene.scene": "Scene",
    "sharnir.engine.sequential.solver": "SolverSequential",
    "sharnir.io.meshes": "Surface",
    "sharnir.geometry.shapes": "Box Capsule Compound Cone Cylinder Ellipsoid Mesh PointMass Shape Sphere",
    "sharnir.runtime.simulation": "Simulation",
    "sharnir.runtime.split": "SplitSimulation",
    "sharnir.runtime.tolerances": "Tolerances",
    "sharnir.engine.base": "Report",
    "sharnir.core.precision": "set_precision",
    "sharnir.core.spatial": "about rpy",
    "sharnir.study.fitting": "Fit fit",
    "sharnir.study.result": "StudyResult",
    "sharnir.study.rollout": "Rollout rollout",
    "sharnir.study.run": "run_study",
    "sharnir.runtime.contacts": "ContactPoints",
}
_REMOVED = {"SolverArticulated": "removed in 0.3.0: it was the direct solver; use SolverDirect, or Simulation(solver='direct')"}
_RENAMED = {"SolverImpulse": "SolverSequential", "sweep": "run_study", "SweepResult": "StudyResult"}
"""Names of 0.2.0, which warn until 0.4.0."""
_MODULES = {
    "control": "sharnir.control", "dynamics": "sharnir.dynamics", "gym": "sharnir.learn", "optimize": "sharnir.optimize",
    "sensors": "sharnir.sensors", "terrain": "sharnir.geometry.terrain",
}  # fmt: skip
__path__.append(f"{__path__[0]}/former")  # modules under the names of the last release, which warn
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names.split()}


if not TYPE_CHECKING:  # or every word would be right

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        elif name in _MODULES:
            value = importlib.import_module(_MODULES[name])
        elif name in _RENAMED:
            from sharnir.core.renamed import warn_renamed

            warn_renamed(f"sharnir.{name}", f"sharnir.{_RENAMED[name]}")
            return __getattr__(_RENAMED[name])
        elif name in _REMOVED:
            raise AttributeError(f"sharnir.{name} was {_REMOVED[name]}")
        else:
            from sharnir.core.misspellings import meant

            raise AttributeError(
                f"module 'sharnir' has no attribute {name!r}{meant(name, __all__)}; available: {', '.join(__all__)}"
            )
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
