"""Kernels of sensors: what they measure, and what their noise does to it. Values are [value, world]."""

import warp as wp

from sharnir.core.types import quat, real, vec3

TWO_PI = wp.constant(wp.float64(6.283185307179586))
FIRST_MIXER, SECOND_MIXER = wp.constant(wp.uint64(0xBF58476D1CE4E5B9)), wp.constant(wp.uint64(0x94D049BB133111EB))
GOLDEN_INCREMENT = wp.constant(wp.uint64(0x9E3779B97F4A7C15))
PROBE_INERTIAL, PROBE_FORCE, PROBE_DISTANCE = wp.constant(0), wp.constant(1), wp.constant(2)
"""Kinds of probes."""


# ---- true values --------------------------------------------------------------------------------------------------------------


@wp.struct
class Probe:
    """A sensor that measures a few values of bodies or joints: an IMU, a force/torque sensor or a distance."""

    kind: wp.int32
    body: wp.int32  # that carries it
    point: vec3  # m, from the body's centre of mass, body axes
    rotation: quat  # of the sensor's axes in the body's
    other: wp.int32  # joint whose reaction is measured, or body to which the distance is measured
    other_point: vec3  # m, on that body, from its centre of mass, its axes
    row: wp.int32  # first row of its values in `ProbeData.value`
    memory: wp.int32  # first row in `ProbeData.velocity_then`, of an IMU
    clock: wp.int32  # index in `ProbeData.between`


@wp.struct
class ProbeData:
    """What probes read, and where they write."""

    position: wp.array2d(dtype=vec3)  # [body, world] m, of the centre of mass
    rotation: wp.array2d(dtype=quat)
    velocity: wp.array2d(dtype=vec3)  # m/s
    angular_velocity: wp.array2d(dtype=vec3)  # rad/s
    joint_force: wp.array2d(dtype=vec3)  # [joint, world] N·s, impulse of the last step on the child
    joint_torque: wp.array2d(dtype=vec3)  # N·m·s
    gravity: wp.array(dtype=vec3)  # [world] m/s²
    dt: wp.array(dtype=real)  # [1] s
    between: wp.array(dtype=real)  # [clock] s since the last reading; 0: there was none
    velocity_then: wp.array2d(dtype=real)  # [3 per IMU, world] m/s, at the last reading
    value: wp.array2d(dtype=real)  # [value, world]


@wp.func
def write_vector(to: wp.array2d(dtype=real), row: int, w: int, v: vec3) -> None:
    for k in range(3):
        to[row + k, w] = v[k]


@wp.func
def measure_inertial(p: Probe, d: wp.array(dtype=ProbeData), w: int) -> None:
    """Acceleration Rᵀ (Δv/Δt − g), m/s², and angular velocity Rᵀ ω, rad/s; v is the velocity of the sensor's origin."""
    q = d[0].rotation[p.body, w]
    omega = d[0].angular_velocity[p.body, w]
    v = d[0].velocity[p.body, w] + wp.cross(omega, wp.quat_rotate(q, p.point))
    felt = -d[0].gravity[w]
    between = d[0].between[p.clock]
    then = vec3(d[0].velocity_then[p.memory, w], d[0].velocity_then[p.memory + 1, w], d[0].velocity_then[p.memory + 2, w])
    if between > real(0.0) and not wp.isnan(then[0]):
        felt = felt + (v - then) / between
    axes = q * p.rotation
    write_vector(d[0].velocity_then, p.memory, w, v)
    write_vector(d[0].value, p.row, w, wp.quat_rotate_inv(axes, felt))
    write_vector(d[0].value, p.row + 3, w, wp.quat_rotate_inv(axes, omega))


@wp.func
def measure_force(p: Probe, d: wp.array(dtype=ProbeData), w: int) -> None:
    """Force (N) and torque (N·m) of a joint on its child, mean over the last step, in the sensor's axes."""
    axes = d[0].rotation[p.body, w] * p.rotation
    write_vector(d[0].value, p.row, w, wp.quat_rotate_inv(axes, d[0].joint_force[p.other, w] / d[0].dt[0]))
    write_vector(d[0].value, p.row + 3, w, wp.quat_rotate_inv(axes, d[0].joint_torque[p.other, w] / d[0].dt[0]))


@wp.func
def measure_distance(p: Probe, d: wp.array(dtype=ProbeData), w: int) -> None:
    """Distance of two points of bodies, m."""
    a = d[0].position[p.body, w] + wp.quat_rotate(d[0].rotation[p.body, w], p.point)
    b = d[0].position[p.other, w] + wp.quat_rotate(d[0].rotation[p.other, w], p.other_point)
    d[0].value[p.row, w] = wp.length(b - a)


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def measure_probes(probes: wp.array(dtype=Probe), which: wp.array(dtype=wp.int32), d: wp.array(dtype=ProbeData)) -> None:
    """True values of some probes. One thread per probe and world."""
    k, w = wp.tid()
    p = probes[which[k]]
    if p.kind == PROBE_INERTIAL:
        measure_inertial(p, d, w)
    elif p.kind == PROBE_FORCE:
        measure_force(p, d, w)
    else:
        measure_distance(p, d, w)


# ---- noise --------------------------------------------------------------------------------------------------------------------


@wp.struct
class NoiseTable:
    """Noise of one sensor. A row is a value, or a quantity if the sensor has many values. See `Noise`."""

    latency: wp.int32  # samples
    key: wp.uint64
    row_of: wp.array(dtype=wp.int32)  # [value]
    sigma: wp.array(dtype=real)  # [row]
    bias: wp.array(dtype=real)
    walk: wp.array(dtype=real)
    step: wp.array(dtype=real)
    low: wp.array(dtype=real)
    high: wp.array(dtype=real)
    fault_sigma: wp.array(dtype=real)  # added by a failure
    fault_bias: wp.array(dtype=real)
    dropped: wp.array(dtype=wp.int32)  # [1]
    interval: wp.array(dtype=real)  # [1] s, between samples
    drift: wp.array2d(dtype=real)  # [row, world]
    count: wp.array(dtype=wp.int32)  # [world] samples so far
    first: wp.array(dtype=wp.int32)  # [1] number of the first world, if worlds are some of many
    ring: wp.array2d(dtype=real)  # [latency · values, world]
    value: wp.array2d(dtype=real)  # [value, world]


@wp.func
def mixed(x: wp.uint64) -> wp.uint64:
    """A hash of a number: shifts and products that lose nothing (the finish of SplitMix64)."""
    x = (x ^ (x >> wp.uint64(30))) * FIRST_MIXER
    x = (x ^ (x >> wp.uint64(27))) * SECOND_MIXER
    return x ^ (x >> wp.uint64(31))


@wp.func
def normal(key: wp.uint64, world: int, sample: int, i: int) -> real:
    """A number of the standard normal distribution that belongs to (key, world, sample, i), by Box and Muller."""
    h = mixed(key + GOLDEN_INCREMENT * wp.uint64(world + 1))
    h = mixed(h + GOLDEN_INCREMENT * wp.uint64(sample + 1))
    h = mixed(h + GOLDEN_INCREMENT * wp.uint64(i + 1))
    k = mixed(h + GOLDEN_INCREMENT)
    scale = wp.float64(1.0 / 9007199254740992.0)
    u = (wp.float64(h >> wp.uint64(11)) + wp.float64(0.5)) * scale
    v = wp.float64(k >> wp.uint64(11)) * scale
    return real(wp.sqrt(wp.float64(-2.0) * wp.log(u)) * wp.cos(TWO_PI * v))


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def advance_drift(s: wp.array(dtype=NoiseTable)) -> None:
    """Count one more sample and let biases walk. One thread per sensor and world."""
    k, w = wp.tid()
    n = s[k].count[w]
    s[k].count[w] = n + 1
    if n > 0:
        for r in range(s[k].walk.shape[0]):
            if s[k].walk[r] > real(0.0):
                kick = s[k].walk[r] * wp.sqrt(s[k].interval[0])
                s[k].drift[r, w] = s[k].drift[r, w] + kick * normal(s[k].key, s[k].first[0] + w, n, -2 - r)


@wp.func
def quantized(s: wp.array(dtype=NoiseTable), k: int, r: int, v: real) -> real:
    """A reading rounded to the sensor's resolution and clamped to its range."""
    step = s[k].step[r]
    if step > real(0.0):
        v = wp.floor(v / step + real(0.5)) * step
    return wp.clamp(v, s[k].low[r], s[k].high[r])


@wp.func
def disturb(s: wp.array(dtype=NoiseTable), k: int, i: int, w: int) -> None:
    """Turn true value i of sensor k into a reading."""
    v = s[k].value[i, w]
    r = s[k].row_of[i]
    n = s[k].count[w] - 1
    if wp.isfinite(v):
        v = v + s[k].bias[r] + s[k].fault_bias[r] + s[k].drift[r, w]
        a = s[k].sigma[r]
        b = s[k].fault_sigma[r]
        if a > real(0.0) or b > real(0.0):
            v = v + wp.sqrt(a * a + b * b) * normal(s[k].key, s[k].first[0] + w, n, i)
        v = quantized(s, k, r, v)
    if s[k].latency > 0:
        values = s[k].row_of.shape[0]
        if n == 0:
            for j in range(s[k].latency):
                s[k].ring[j * values + i, w] = v
        at = (n % s[k].latency) * values + i
        now = v
        v = s[k].ring[at, w]
        s[k].ring[at, w] = now
    if s[k].dropped[0] != 0:
        v = real(wp.nan)
    s[k].value[i, w] = v


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def apply_noise(s: wp.array(dtype=NoiseTable)) -> None:
    """Readings of sensors with few values. One thread per sensor and world."""
    k, w = wp.tid()
    for i in range(s[k].row_of.shape[0]):
        disturb(s, k, i, w)


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def apply_noise_to_many(s: wp.array(dtype=NoiseTable), k: int) -> None:
    """Readings of one sensor with many values. One thread per value and world."""
    i, w = wp.tid()
    disturb(s, k, i, w)
