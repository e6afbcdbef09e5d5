import time, sys, warp as wp, numpy as np
import sharnir as sh
from benchmarks.scenes import chain
from benchmarks import gpu
W=131072
def rate(**o):
    t=time.perf_counter()
    sim=sh.Simulation(chain(10,"ball",0.0),1e-3,worlds=W,device="cuda:0",**o); sim.step(10); wp.synchronize(); c=time.perf_counter()-t
    b=[]
    for _ in range(4):
        t=time.perf_counter(); sim.step(50); wp.synchronize(); b.append(50*W/(time.perf_counter()-t)/1e6)
    print(o,"compile+first %.1f s, M steps/s"%c,[round(x,1) for x in b],"tip",sim.body("rod 9").com[0],"passes",sim.step().iterations[:3],flush=True)
rate(method="direct")
rate(method="direct",closing="velocity")
gpu.softly(gpu.peer_speed,W,0.0,"cuda:0")
