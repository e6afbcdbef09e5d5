"""Copies of all that a step changes of ropes."""

import warp as wp

from sharnir.model.rope_state import RopeState


@wp.func
def copy_ropes(a: RopeState, b: RopeState, w: int):
    """The state a of ropes becomes b."""
    for i in range(a.position.shape[0]):
        b.position[i, w] = a.position[i, w]
        b.velocity[i, w] = a.velocity[i, w]
        b.rotation[i, w] = a.rotation[i, w]
        b.spin[i, w] = a.spin[i, w]
        b.pull[i, w] = a.pull[i, w]
        b.moment[i, w] = a.moment[i, w]
        b.smooth[i, w] = a.smooth[i, w]
        b.gain[i, w] = a.gain[i, w]
        b.gain_2[i, w] = a.gain_2[i, w]
        b.gain_3[i, w] = a.gain_3[i, w]
        b.spin_smooth[i, w] = a.spin_smooth[i, w]
        b.spin_gain[i, w] = a.spin_gain[i, w]
        b.spin_gain_2[i, w] = a.spin_gain_2[i, w]
        b.spin_gain_3[i, w] = a.spin_gain_3[i, w]
        b.before[i, w] = a.before[i, w]
        b.length[i, w] = a.length[i, w]
        b.tight[i, w] = a.tight[i, w]
        b.was[i, w] = a.was[i, w]
        b.now[i, w] = a.now[i, w]
        b.span[i, w] = a.span[i, w]
        b.cut[i, w] = a.cut[i, w]
        b.slack[i, w] = a.slack[i, w]
    for end in range(a.end_force.shape[0]):
        b.end_force[end, w] = a.end_force[end, w]
        b.end_mean[end, w] = a.end_mean[end, w]
    for t in range(a.tie_force.shape[0]):
        b.tie_force[t, w] = a.tie_force[t, w]
    for k in range(a.segments.shape[0]):
        b.segments[k, w] = a.segments[k, w]
        b.started[k, w] = a.started[k, w]
        b.degree[k, w] = a.degree[k, w]
        b.owed[k, w] = a.owed[k, w]
        b.reel_rate[k, w] = a.reel_rate[k, w]
        b.reel_now[k, w] = a.reel_now[k, w]
