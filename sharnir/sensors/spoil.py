"""What sensors measure on the device, and what noise does to it: [value, world]."""

import warp as wp

from sharnir.types import quat, real, vec3

TWO_PI = wp.constant(wp.float64(6.283185307179586))
FIRST, SECOND = wp.constant(wp.uint64(0xBF58476D1CE4E5B9)), wp.constant(wp.uint64(0x94D049BB133111EB))
ODD = wp.constant(wp.uint64(0x9E3779B97F4A7C15))


@wp.struct
class Spoil:
    """Noise of one sensor; rows are quantities where its values are many, else values. See `Noise`."""

    latency: wp.int32  # samples
    key: wp.uint64
    of: wp.array(dtype=wp.int32)  # [value] its row
    sigma: wp.array(dtype=real)  # [row]
    bias: wp.array(dtype=real)
    walk: wp.array(dtype=real)
    step: wp.array(dtype=real)
    low: wp.array(dtype=real)
    high: wp.array(dtype=real)
    more_sigma: wp.array(dtype=real)  # of a failure
    more_bias: wp.array(dtype=real)
    dropped: wp.array(dtype=wp.int32)  # [1]
    interval: wp.array(dtype=real)  # [1] s, between samples
    drift: wp.array2d(dtype=real)  # [row, world]
    count: wp.array(dtype=wp.int32)  # [world] samples so far
    ring: wp.array2d(dtype=real)  # [latency · values, world]
    value: wp.array2d(dtype=real)  # [value, world]


def np_key(number: int) -> wp.uint64:
    """A key as the device takes it."""
    return wp.uint64(number)


@wp.func
def mixed(x: wp.uint64) -> wp.uint64:
    """A number that looks like any other: shifts and products that lose nothing (the finish of SplitMix64)."""
    x = (x ^ (x >> wp.uint64(30))) * FIRST
    x = (x ^ (x >> wp.uint64(27))) * SECOND
    return x ^ (x >> wp.uint64(31))


@wp.func
def normal(key: wp.uint64, world: int, sample: int, i: int) -> real:
    """A number of the standard normal distribution that belongs to (key, world, sample, i), by Box and Muller."""
    h = mixed(key + ODD * wp.uint64(world + 1))
    h = mixed(h + ODD * wp.uint64(sample + 1))
    h = mixed(h + ODD * wp.uint64(i + 1))
    k = mixed(h + ODD)
    scale = wp.float64(1.0 / 9007199254740992.0)
    u = (wp.float64(h >> wp.uint64(11)) + wp.float64(0.5)) * scale
    v = wp.float64(k >> wp.uint64(11)) * scale
    return real(wp.sqrt(wp.float64(-2.0) * wp.log(u)) * wp.cos(TWO_PI * v))


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def advance_drift(s: wp.array(dtype=Spoil)):
    """One more sample: biases walk on. A thread a world."""
    w = wp.tid()
    n = s[0].count[w]
    s[0].count[w] = n + 1
    if n > 0:
        for r in range(s[0].walk.shape[0]):
            if s[0].walk[r] > real(0.0):
                kick = s[0].walk[r] * wp.sqrt(s[0].interval[0])
                s[0].drift[r, w] = s[0].drift[r, w] + kick * normal(s[0].key, w, n, -2 - r)


@wp.func
def limited(s: wp.array(dtype=Spoil), r: int, v: real) -> real:
    """A reading as coarse and as bounded as the sensor is."""
    step = s[0].step[r]
    if step > real(0.0):
        v = wp.floor(v / step + real(0.5)) * step
    return wp.clamp(v, s[0].low[r], s[0].high[r])


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def spoil_values(s: wp.array(dtype=Spoil)):
    """True values become readings."""
    i, w = wp.tid()
    v = s[0].value[i, w]
    r = s[0].of[i]
    n = s[0].count[w] - 1
    if wp.isfinite(v):
        v = v + s[0].bias[r] + s[0].more_bias[r] + s[0].drift[r, w]
        a = s[0].sigma[r]
        b = s[0].more_sigma[r]
        if a > real(0.0) or b > real(0.0):
            v = v + wp.sqrt(a * a + b * b) * normal(s[0].key, w, n, i)
        v = limited(s, r, v)
    if s[0].latency > 0:
        values = s[0].of.shape[0]
        if n == 0:
            for k in range(s[0].latency):
                s[0].ring[k * values + i, w] = v
        at = (n % s[0].latency) * values + i
        now = v
        v = s[0].ring[at, w]
        s[0].ring[at, w] = now
    if s[0].dropped[0] != 0:
        v = real(wp.nan)
    s[0].value[i, w] = v


# ---- accelerometer and gyroscope ----------------------------------------------------------------------------------------------


@wp.struct
class Inertial:
    """An IMU on a body. See `IMU`."""

    body: wp.int32
    arm: vec3  # m, from the body's centre of mass, body axes
    turn: quat  # of its axes in the body's
    between: wp.array(dtype=real)  # [1] s since the last reading; 0: there was none
    rotation: wp.array2d(dtype=quat)  # [body, world]
    velocity: wp.array2d(dtype=vec3)
    spin: wp.array2d(dtype=vec3)
    gravity: wp.array(dtype=vec3)  # [world]
    last: wp.array2d(dtype=real)  # [3, world] m/s, its velocity then
    value: wp.array2d(dtype=real)  # [6, world] m/s², rad/s


@wp.kernel(module="sharnir.sensors", enable_backward=False)
def measure_inertia(s: wp.array(dtype=Inertial)):
    """Rᵀ (Δv/Δt − g) and Rᵀ ω, v being the velocity of its place. A thread a world."""
    w = wp.tid()
    q = s[0].rotation[s[0].body, w]
    spin = s[0].spin[s[0].body, w]
    v = s[0].velocity[s[0].body, w] + wp.cross(spin, wp.quat_rotate(q, s[0].arm))
    felt = -s[0].gravity[w]
    if s[0].between[0] > real(0.0):
        felt = felt + (v - vec3(s[0].last[0, w], s[0].last[1, w], s[0].last[2, w])) / s[0].between[0]
    own = q * s[0].turn
    felt = wp.quat_rotate_inv(own, felt)
    rate = wp.quat_rotate_inv(own, spin)
    for k in range(3):
        s[0].last[k, w] = v[k]
        s[0].value[k, w] = felt[k]
        s[0].value[3 + k, w] = rate[k]
