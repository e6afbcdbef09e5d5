"""Caps of the passes of a step, by its time; with ropes and without."""

LONGEST = 0.045  # s, that a step of a small scene may take, with ropes one in which no further part is made
HEADWAY = 40  # times LONGEST, that a step with ropes may take as long as it makes one part after the other
SMALL_SCENE = 50  # most bodies of a small scene, the world included; it has at most ten times as many elements of ropes
MOST_PASSES = 20_000  # in a step of a large scene, however finely it is divided
HEARD = 0.05  # s, after which no further step of a call is begun before Python was heard
NEVER = 1 << 30  # passes
