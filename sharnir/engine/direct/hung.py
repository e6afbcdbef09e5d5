"""What ropes that hang on links do to these."""

import warp as wp

from sharnir.core.types import real, vec3
from sharnir.engine.direct.data import Direct
from sharnir.engine.rope.data import RopeStep


@wp.func
def push_links(s: wp.array(dtype=Direct), r: wp.array(dtype=RopeStep), w: int):
    """Impulses −p on bodies, as pushes of their links."""
    for n in range(s[0].tree.count):
        b = s[0].tree.body[n]
        s[0].work.Q_l[n, w] = vec3(real(0.0))
        s[0].work.Q_a[n, w] = vec3(real(0.0))
        if b < s[0].own:
            s[0].work.Q_l[n, w] = -r[0].body.p_l[b, w]
            s[0].work.Q_a[n, w] = -r[0].body.p_a[b, w]
