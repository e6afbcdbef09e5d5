"""Light of rendered pictures: sky, sun, checkered ground and haze, as functions of Warp kernels.

Colours are linear, not sRGB.
"""

import warp as wp

ZENITH = wp.constant(wp.vec3f(0.30, 0.50, 0.82))
HORIZON = wp.constant(wp.vec3f(0.80, 0.87, 0.93))
BELOW = wp.constant(wp.vec3f(0.62, 0.64, 0.66))  # the sky under the horizon, where a scene has no ground
SKY_LIGHT = wp.constant(wp.vec3f(0.36, 0.40, 0.46))  # on a surface that faces up
GROUND_LIGHT = wp.constant(wp.vec3f(0.22, 0.20, 0.18))  # on a surface that faces down
SUN_LIGHT = wp.constant(wp.vec3f(0.78, 0.74, 0.66))  # on a surface that faces the sun
DARKER = wp.constant(wp.float32(0.72))  # brightness of every other square of a checkered ground
LINE_BRIGHTNESS = wp.constant(wp.float32(0.55))  # brightness of the lines around ten squares by ten
REFLECTED = wp.constant(wp.float32(0.04))  # share of light that paint, plastic and glass reflect head on
MIRROR = wp.constant(wp.float32(0.5))  # roughness from which on the sky is seen in a surface only as its mean light


@wp.func
def sky_colour(up: wp.float32) -> wp.vec3f:
    """Linear colour of the sky in a direction; up: the vertical component of its unit vector."""
    if up >= wp.float32(0.0):
        share = wp.sqrt(wp.min(up, wp.float32(1.0)))
        return HORIZON + (ZENITH - HORIZON) * share
    share = wp.min(wp.float32(-3.0) * up, wp.float32(1.0))
    return HORIZON + (BELOW - HORIZON) * share


@wp.func
def triangle_wave(x: wp.float32) -> wp.float32:
    """The integral of a square wave of ±1 with period 2: a triangle wave from 0 to 1."""
    r = x - wp.float32(2.0) * wp.floor(x * wp.float32(0.5))
    return wp.where(r < wp.float32(1.0), r, wp.float32(2.0) - r)


@wp.func
def square_mean(x: wp.float32, width: wp.float32) -> wp.float32:
    """Mean of a square wave of ±1 with period 2 over a width about x."""
    w = wp.max(width, wp.float32(1.0e-4))
    if w > wp.float32(4.0):
        return wp.float32(0.0)
    half = wp.float32(0.5) * w
    return (triangle_wave(x + half) - triangle_wave(x - half)) / w


@wp.func
def checker(x: wp.float32, y: wp.float32, width: wp.float32) -> wp.float32:
    """Brightness of checkered ground at (x, y), in squares, averaged over a pixel that is `width` squares wide there."""
    sign = square_mean(x, width) * square_mean(y, width)
    bright = wp.float32(0.5) * (wp.float32(1.0) + DARKER) + wp.float32(0.5) * (wp.float32(1.0) - DARKER) * sign
    nx = wp.abs(x - wp.float32(10.0) * wp.round(x / wp.float32(10.0)))
    ny = wp.abs(y - wp.float32(10.0) * wp.round(y / wp.float32(10.0)))
    wide = wp.float32(0.03)
    reach = wide + width
    cover = wp.max(wp.float32(0.0), wp.float32(1.0) - wp.min(nx, ny) / reach) * wide / reach
    return bright * (wp.float32(1.0) - (wp.float32(1.0) - LINE_BRIGHTNESS) * wp.min(cover * wp.float32(2.0), wp.float32(1.0)))


@wp.func
def lit(albedo: wp.vec3f, n: wp.vec3f, d: wp.vec3f, sun: wp.vec3f, open: wp.float32, finish: wp.vec2f) -> wp.vec3f:
    """Light from a surface of normal n to a viewer who looks along d.

    open: share of the sun that is not in shadow. finish: roughness and metalness. A highlight is that of Blinn and Phong with the
    exponent 2/roughness⁴ (32 at a roughness of 0.5), its height grows as it narrows; a metal reflects with its own colour.
    """
    rough = wp.max(finish[0], wp.float32(0.1))
    metal = finish[1]
    facing = wp.float32(0.5) + wp.float32(0.5) * n[2]
    light = GROUND_LIGHT + (SKY_LIGHT - GROUND_LIGHT) * facing
    toward = wp.max(wp.dot(n, sun), wp.float32(0.0)) * open
    out = wp.cw_mul(albedo, light + SUN_LIGHT * toward) * (wp.float32(1.0) - metal)
    paint = REFLECTED * (wp.float32(1.0) - metal)
    mirrored = wp.vec3f(paint, paint, paint) + albedo * metal  # share that is reflected, of each colour
    if toward > wp.float32(0.0):
        squared = rough * rough
        power = wp.float32(2.0) / (squared * squared)
        shine = wp.pow(wp.max(wp.dot(n, wp.normalize(sun - d)), wp.float32(0.0)), power)
        out = out + mirrored * (open * shine * (power + wp.float32(8.0)) / wp.float32(32.0))
    clear = wp.max(wp.float32(1.0) - rough / MIRROR, wp.float32(0.0))
    if metal > wp.float32(0.0) or clear > wp.float32(0.0):
        back = d - n * (wp.float32(2.0) * wp.dot(n, d))
        mean = GROUND_LIGHT + (SKY_LIGHT - GROUND_LIGHT) * (wp.float32(0.5) + wp.float32(0.5) * back[2])
        around = mean + (sky_colour(back[2]) - mean) * clear
        graze = wp.float32(1.0) - wp.min(wp.abs(wp.dot(n, d)), wp.float32(1.0))
        fresnel = graze * graze * graze * graze * graze * clear
        share = mirrored + (wp.vec3f(wp.float32(1.0), wp.float32(1.0), wp.float32(1.0)) - mirrored) * fresnel
        out = out + wp.cw_mul(share, around) * (metal + (wp.float32(1.0) - metal) * clear)
        out = out + wp.cw_mul(albedo, SUN_LIGHT) * (toward * metal * finish[0])  # of a rough metal: the sun, widely scattered
    return out
