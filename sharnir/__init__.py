"""sharnir: real-time dynamics of jointed bodies and ropes."""

from sharnir.articulated.solver import SolverArticulated
from sharnir.axes import Cardan, DCMotor, Friction, Limit, Servo, SwingTwist
from sharnir.collision.material import Material
from sharnir.compare import Comparison, compare
from sharnir.direct.solver import SolverDirect
from sharnir.errors import DivergenceError, SceneError, SceneWarning, SimulationError, StepWarning
from sharnir.health import Health
from sharnir.io import load_urdf
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
from sharnir.measures import Energy, Momentum
from sharnir.model import Control, Model, State
from sharnir.scene import Scene
from sharnir.sequential.solver import SolverImpulse
from sharnir.shapes import Box, Capsule, Compound, Cone, Cylinder, Ellipsoid, Mesh, PointMass, Shape, Sphere
from sharnir.simulation import Simulation
from sharnir.solver import Report

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Capsule",
    "Cardan",
    "Comparison",
    "Compound",
    "Cone",
    "Control",
    "Cylinder",
    "Cylindrical",
    "DCMotor",
    "Distance",
    "DivergenceError",
    "Ellipsoid",
    "Energy",
    "Fixed",
    "Free",
    "Friction",
    "Gear",
    "Health",
    "Joint",
    "Limit",
    "Material",
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
    "SceneWarning",
    "Servo",
    "Shape",
    "Simulation",
    "SimulationError",
    "SolverArticulated",
    "SolverDirect",
    "SolverImpulse",
    "Sphere",
    "Spherical",
    "State",
    "StepWarning",
    "SwingTwist",
    "Universal",
    "compare",
    "dynamics",
    "load_urdf",
]
