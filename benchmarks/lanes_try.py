import sys
import benchmarks.gpu_contact as g
import sharnir.engine.direct.trees as trees
import sharnir.engine.tree.generic as generic
for worlds, many in ((4096, (0, 16, 8, 4)), (65536, (0, 16))):
    for lanes in many:
        trees.lanes_of_warps = lambda w, m, lanes=lanes: lanes
        for name in ("standing", "walking"):
            print("lanes", lanes, end=" ")
            try:
                g.measure(name, worlds, "cuda:0", True)
            except Exception as e:
                print("FAILED", repr(e)[:200])
            sys.stdout.flush()
