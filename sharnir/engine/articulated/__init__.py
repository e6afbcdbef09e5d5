"""Trees of bodies in maximal coordinates: spanning trees, articulated-body passes, inverse kinematics."""
