"""Contacts of all worlds after a step as device arrays: forces, and their sums on each body.

A thread is a world, so that sums have one order and need no atomics.
"""

import warp as wp

from sharnir.core.types import real, vec3


@wp.struct
class ContactTable:
    """Contacts between bodies, [contact, world], and their sums. Rows from `count` on hold body −1 and zeros."""

    count: wp.array(dtype=wp.int32)  # [world] contacts
    body_a: wp.array2d(dtype=wp.int32)
    body_b: wp.array2d(dtype=wp.int32)
    point: wp.array2d(dtype=vec3)  # m, world axes, midway between the surfaces, at the start of the step
    normal: wp.array2d(dtype=vec3)  # unit, from a to b
    gap: wp.array2d(dtype=real)  # m, negative where they overlap
    force: wp.array2d(dtype=vec3)  # N, on b, mean over the step, impacts included
    normal_force: wp.array2d(dtype=real)  # N, its part along the normal
    friction_force: wp.array2d(dtype=vec3)  # N, its part across the normal
    body_force: wp.array2d(dtype=vec3)  # [body, world] N, of all that touches it, ropes too
    body_moment: wp.array2d(dtype=vec3)  # N·m, of these forces about the centre of mass


@wp.func
def start_of_step(position: wp.array2d(dtype=vec3), velocity: wp.array2d(dtype=vec3), h: real, body: int, w: int) -> vec3:
    """Where the centre of mass was when the points were found, m."""
    return position[body, w] - velocity[body, w] * h


@wp.kernel(module="sharnir.contact_table", enable_backward=False)
def fill_contacts(
    count: wp.array(dtype=wp.int32),
    body_a: wp.array2d(dtype=wp.int32),
    body_b: wp.array2d(dtype=wp.int32),
    point: wp.array2d(dtype=vec3),
    normal: wp.array2d(dtype=vec3),
    gap: wp.array2d(dtype=real),
    impulse: wp.array2d(dtype=vec3),
    impact: wp.array2d(dtype=vec3),  # N·s, of impacts; no rows where the solver has them in `impulse`
    dt: wp.array(dtype=real),
    position: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
    t: ContactTable,
) -> None:
    """Copy the contacts of each world, and add their forces up body by body."""
    w = wp.tid()
    h = dt[0]
    for b in range(t.body_force.shape[0]):
        t.body_force[b, w] = vec3()
        t.body_moment[b, w] = vec3()
    for i in range(count[w]):
        a = body_a[i, w]
        b = body_b[i, w]
        x = point[i, w]
        n = normal[i, w]
        P = impulse[i, w]
        if impact.shape[0] > 0:
            P = P + impact[i, w]
        F = P / h
        along = wp.dot(n, F)
        t.body_a[i, w] = a
        t.body_b[i, w] = b
        t.point[i, w] = x
        t.normal[i, w] = n
        t.gap[i, w] = gap[i, w]
        t.force[i, w] = F
        t.normal_force[i, w] = along
        t.friction_force[i, w] = F - n * along
        t.body_force[a, w] = t.body_force[a, w] - F
        t.body_force[b, w] = t.body_force[b, w] + F
        t.body_moment[a, w] = t.body_moment[a, w] - wp.cross(x - start_of_step(position, velocity, h, a, w), F)
        t.body_moment[b, w] = t.body_moment[b, w] + wp.cross(x - start_of_step(position, velocity, h, b, w), F)
    for i in range(count[w], t.count[w]):
        t.body_a[i, w] = -1
        t.body_b[i, w] = -1
        t.point[i, w] = vec3()
        t.normal[i, w] = vec3()
        t.gap[i, w] = real(0.0)
        t.force[i, w] = vec3()
        t.normal_force[i, w] = real(0.0)
        t.friction_force[i, w] = vec3()
    t.count[w] = count[w]


@wp.kernel(module="sharnir.contact_table", enable_backward=False)
def add_ropes(
    count: wp.array2d(dtype=wp.int32),  # [point of a rope, world] its contacts with shapes
    most: int,  # contacts of one point of a rope, at most
    shape: wp.array2d(dtype=wp.int32),
    shape_body: wp.array(dtype=wp.int32),
    normal: wp.array2d(dtype=vec3),  # from the shape to the rope
    gap: wp.array2d(dtype=real),
    impulse: wp.array2d(dtype=vec3),  # N·s, on the rope
    rope_position: wp.array2d(dtype=vec3),
    radius: wp.array(dtype=real),  # [point of a rope] m
    dt: wp.array(dtype=real),
    position: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
    t: ContactTable,
) -> None:
    """Add the forces of ropes to those on the bodies that they touch."""
    w = wp.tid()
    h = dt[0]
    for slot in range(count.shape[0]):
        for k in range(count[slot, w]):
            i = most * slot + k
            b = shape_body[shape[i, w]]
            n = normal[i, w]
            x = rope_position[slot, w] - n * (radius[slot] + real(0.5) * gap[i, w])
            F = impulse[i, w] / h
            t.body_force[b, w] = t.body_force[b, w] - F
            t.body_moment[b, w] = t.body_moment[b, w] - wp.cross(x - start_of_step(position, velocity, h, b, w), F)


@wp.kernel(module="sharnir.contact_table", enable_backward=False)
def sum_between(
    body: int,
    others: wp.array(dtype=wp.int32),  # [body] 1: it is one of the others
    dt: wp.array(dtype=real),
    position: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
    t: ContactTable,
    force: wp.array(dtype=vec3),  # [world] N, on the body by the others
    moment: wp.array(dtype=vec3),  # [world] N·m, about its centre of mass
) -> None:
    """Add up the forces between a body and some others in each world."""
    w = wp.tid()
    F = vec3()
    M = vec3()
    com = start_of_step(position, velocity, dt[0], body, w)
    for i in range(t.count[w]):
        f = vec3()
        if t.body_b[i, w] == body and others[t.body_a[i, w]] == 1:
            f = t.force[i, w]
        if t.body_a[i, w] == body and others[t.body_b[i, w]] == 1:
            f = f - t.force[i, w]
        F = F + f
        M = M + wp.cross(t.point[i, w] - com, f)
    force[w] = F
    moment[w] = M
