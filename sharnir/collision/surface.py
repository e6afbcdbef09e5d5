"""What two surfaces have in common where they touch: materials combined as `Material` says, axes of friction, conveyors."""

import warp as wp

from sharnir.collision.data import Collision, vec2
from sharnir.core.types import real, vec3


@wp.struct
class Mixed:
    """The combined material of a pair; `along` and `surface` in world axes, not yet across a normal."""

    friction: vec2
    dynamic: real
    restitution: real
    rolling: real
    torsion: real
    stiffness: real
    damping: real
    shear: vec2
    relaxation: real
    turned: real
    along: vec3
    surface: vec3


@wp.func
def is_zero_vector(v: vec3) -> bool:
    """Whether a vector is 0."""
    return v[0] == real(0.0) and v[1] == real(0.0) and v[2] == real(0.0)


@wp.func
def from_shape_to_world(s: wp.array(dtype=Collision), i: int, v: vec3, w: int) -> vec3:
    """A vector in the axes of shape i's body, in world axes."""
    if is_zero_vector(v):
        return v
    return wp.quat_rotate(s[0].rotation[s[0].shapes.body[i], w], v)


@wp.func
def mix_materials(s: wp.array(dtype=Collision), i: int, j: int, rule: int, w: int) -> Mixed:
    """Of shapes i and j: √ for friction, the larger for all else; or the pair's own material, `rule`."""
    out = Mixed()
    x = s[0].shapes.material[i]
    y = s[0].shapes.material[j]
    if rule >= 0:
        x = rule
        y = rule
    a = s[0].materials.friction[x, w]
    b = s[0].materials.friction[y, w]
    out.friction = vec2(wp.sqrt(a[0] * b[0]), wp.sqrt(a[1] * b[1]))
    out.dynamic = wp.sqrt(s[0].materials.dynamic[x, w] * s[0].materials.dynamic[y, w])
    out.restitution = wp.max(s[0].materials.restitution[x, w], s[0].materials.restitution[y, w])
    out.rolling = wp.max(s[0].materials.rolling[x, w], s[0].materials.rolling[y, w])
    out.torsion = wp.max(s[0].materials.torsion[x, w], s[0].materials.torsion[y, w])
    out.stiffness = wp.max(s[0].materials.stiffness[x, w], s[0].materials.stiffness[y, w])
    out.damping = wp.max(s[0].materials.damping[x, w], s[0].materials.damping[y, w])
    out.along = from_shape_to_world(s, j, s[0].materials.direction[y, w], w)
    out.turned = -s[0].materials.turned[y, w]
    if is_zero_vector(out.along):
        out.along = from_shape_to_world(s, i, s[0].materials.direction[x, w], w)
        out.turned = s[0].materials.turned[x, w]
    c = s[0].materials.shear[x, w]
    d = s[0].materials.shear[y, w]
    out.shear = vec2(wp.max(c[0], d[0]), wp.max(c[1], d[1]))
    out.relaxation = wp.max(s[0].materials.relaxation[x, w], s[0].materials.relaxation[y, w])
    out.surface = from_shape_to_world(s, j, s[0].shapes.surface[j, w], w) - from_shape_to_world(
        s, i, s[0].shapes.surface[i, w], w
    )
    return out


@wp.func
def grip_at(s: wp.array(dtype=Collision), i: int, x: vec3, w: int) -> real:
    """By what the friction of a point x on height field i is larger than its material says."""
    first = s[0].shapes.grip_first[i]
    if first < 0:
        return real(1.0)
    d = wp.transpose(s[0].broad.frame[i, w]) * (x - s[0].broad.centre[i, w])
    half = s[0].shapes.size[i]
    nx = s[0].shapes.columns[i] - 1
    ny = s[0].shapes.length[i] - 1
    column = wp.clamp(int(wp.floor((d[0] / half[0] + real(1.0)) * real(0.5) * real(nx))), 0, nx - 1)
    row = wp.clamp(int(wp.floor((d[1] / half[1] + real(1.0)) * real(0.5) * real(ny))), 0, ny - 1)
    return s[0].shapes.grip[first + column * ny + row]


@wp.func
def write_mixed(s: wp.array(dtype=Collision), m: Mixed, i: int, p: int, w: int) -> None:
    """For point p on shape i, whose normal is known."""
    grip = grip_at(s, i, s[0].contacts.point[p, w], w)
    s[0].contacts.friction[p, w] = m.friction * grip
    s[0].contacts.dynamic[p, w] = m.dynamic * grip
    s[0].contacts.restitution[p, w] = m.restitution
    s[0].contacts.rolling[p, w] = m.rolling
    s[0].contacts.torsion[p, w] = m.torsion
    s[0].contacts.stiffness[p, w] = m.stiffness
    s[0].contacts.damping[p, w] = m.damping
    n = s[0].contacts.normal[p, w]
    along = m.along
    if not is_zero_vector(along):
        along = along - n * wp.dot(n, along)
        far = wp.length(along)
        along = wp.where(far > real(1.0e-6), along / far, vec3())
        if m.turned != real(0.0):
            along = along * wp.cos(m.turned) + wp.cross(n, along) * wp.sin(m.turned)
    s[0].contacts.along[p, w] = along
    v = m.surface
    if not is_zero_vector(v):
        v = v - n * wp.dot(n, v)
    s[0].contacts.surface[p, w] = v


@wp.func
def write_tyre(s: wp.array(dtype=Collision), m: Mixed, i: int, p: int, size: int, w: int) -> None:
    """How the tread at point p, one of `size` of its pair, yields; i: the pair's first shape."""
    bits = int(1)
    if s[0].materials.relaxation[s[0].shapes.material[i], w] > real(0.0):
        bits = 9
    s[0].contacts.special[p, w] = s[0].contacts.special[p, w] | bits
    s[0].contacts.shear[p, w] = m.shear / real(size)
    s[0].contacts.relaxation[p, w] = m.relaxation


@wp.func
def write_cast(s: wp.array(dtype=Collision), k: int, axis: vec3, p: int, w: int) -> None:
    """A raycast wheel touches at point p: a tyre, if only a rigid one, whose first axis is the axle; it resists rolling."""
    if s[0].contacts.special[p, w] & 1 == 0:
        s[0].contacts.shear[p, w] = vec2(real(0.0), real(0.0))
        s[0].contacts.relaxation[p, w] = real(0.0)
    s[0].contacts.special[p, w] = s[0].contacts.special[p, w] | 1 | 16 | (k << 8)
    s[0].contacts.rolling[p, w] = real(0.0)
    s[0].contacts.torsion[p, w] = real(0.0)
    n = s[0].contacts.normal[p, w]
    along = axis - n * wp.dot(n, axis)
    far = wp.length(along)
    s[0].contacts.along[p, w] = wp.where(far > real(1.0e-6), along / far, vec3())


@wp.func
def write_belt(s: wp.array(dtype=Collision), k: int, p: int, w: int) -> None:
    """Belt k runs at point p: outward normal × radius is the arm at which it turns, whichever body it is on."""
    frame = s[0].shapes.belt_frame[k]
    axis = wp.quat_rotate(s[0].rotation[frame, w], s[0].shapes.belt_axis[k])
    if s[0].shapes.belt_body[k] == 0:
        write_cast(s, k, axis, p, w)
    else:
        s[0].contacts.special[p, w] = s[0].contacts.special[p, w] | 2
    s[0].contacts.belt_body[p, w] = s[0].shapes.belt_body[k]
    s[0].contacts.belt_frame[p, w] = frame
    s[0].contacts.belt_axis[p, w] = axis
    s[0].contacts.belt_pull[p, w] = wp.cross(s[0].contacts.normal[p, w], axis) * s[0].shapes.belt_radius[k]
