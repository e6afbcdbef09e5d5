"""The range of speeds in which the laws of an axis are known to do what is expected, so that they are not compared."""

from types import SimpleNamespace

import numpy as np

from sharnir.emit.expressions import sign
from sharnir.engine.tree.joints import Hinge
from sharnir.laws.axis import HELD, INFINITE, linear_servo, prepare


def random_axis(rng):
    """An axis with random laws, some of them absent, in a linearization that may be right."""

    def some(low, high, otherwise=0.0):
        return float(rng.uniform(low, high)) if rng.random() < 0.6 else otherwise

    h = 1e-3
    friction = some(0.0, 2.0)
    link = SimpleNamespace(
        h=h, q=float(rng.uniform(-0.5, 0.5)), u0=some(-2.0, 2.0), ratio=float(rng.uniform(0.8, 1.0)), D=some(0.5, 20.0, 1.0),
        stuck=0.0, friction_static=friction * float(rng.uniform(1.0, 1.5)), friction_dynamic=friction, friction_stribeck=0.0,
        friction_load=0.0, friction_viscous=0.0, stiffness=0.0, rest=0.0, damping=some(0.0, 1.0), servo_kp=some(0.0, 300.0),
        servo_kd=some(0.0, 10.0), servo_position=0.1, servo_velocity=0.0, servo_torque=0.0,
        servo_max_force=some(0.0, 5.0, INFINITE), limit_lower=some(-0.6, -0.4, -INFINITE), limit_upper=some(0.4, 0.6, INFINITE),
        restitution=0.0, resistance=0.0, unit=1.0, tree=SimpleNamespace(law_tolerance=1e-13),
    )  # fmt: skip
    law = prepare(link, h, link.q, link.u0, link.stuck)
    link.hold, link.slide = law.hold, law.slide
    link.servo_a, link.servo_b = linear_servo(law, link.u0)
    held = friction > 0.0 and rng.random() < 0.3
    link.mode, link.goal = (HELD, link.u0) if held else (sign(rng.normal()), link.u0)
    return link


def test_laws_do_what_is_expected_in_their_range():
    """Also where the response of the axis has changed a little since."""
    rng = np.random.default_rng(5)
    axis, inside, ranges = Hinge(), 0, 0
    for _ in range(3000):
        link = random_axis(rng)
        size = link.h * (abs(link.u0) + 1.0)
        link.z_free = float(rng.normal()) * size
        wrong, rare, _, _ = axis.compare(link)
        axis.know_range(link, wrong | rare)
        ranges += link.safe_lower < link.safe_upper
        ratio, D = link.ratio, link.D
        for _ in range(20):
            link.ratio, link.D = ratio * rng.uniform(0.99, 1.01), D * rng.uniform(0.99, 1.01)
            link.z_free = float(rng.normal()) * size * 10.0 ** rng.uniform(-3.0, 1.0)
            if link.safe_lower < axis.free_speed(link) < link.safe_upper:
                wrong, rare, _, _ = axis.compare(link)
                assert not wrong and not rare, vars(link)
                inside += 1
    assert ranges > 800 and inside > 3000, (ranges, inside)  # it is of use
