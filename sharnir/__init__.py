"""sharnir: real-time dynamics of jointed bodies and ropes."""

from sharnir.errors import SceneError, SimulationError
from sharnir.impulse.solver import Report, SolverImpulse
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
from sharnir.model import Control, Model, State
from sharnir.scene import Scene
from sharnir.shapes import Box, Capsule, Compound, Cone, Cylinder, Ellipsoid, Mesh, PointMass, Shape, Sphere
from sharnir.simulation import Energy, Momentum, Simulation

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Capsule",
    "Compound",
    "Cone",
    "Control",
    "Cylinder",
    "Cylindrical",
    "Distance",
    "Ellipsoid",
    "Energy",
    "Fixed",
    "Free",
    "Gear",
    "Joint",
    "Mesh",
    "Model",
    "Momentum",
    "Planar",
    "PointMass",
    "PointOnLine",
    "Prismatic",
    "Report",
    "Revolute",
    "Scene",
    "SceneError",
    "Shape",
    "Simulation",
    "SimulationError",
    "SolverImpulse",
    "Sphere",
    "Spherical",
    "State",
    "Universal",
]
