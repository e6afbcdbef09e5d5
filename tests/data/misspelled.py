"""Forty words that are not quite right, one a line with `# wrong`; mypy has to find them (tests/core/test_types.py)."""

import sharnir as sh

scene = sh.Scene(gravty=(0, 0, -9.81))  # wrong
scene = sh.Scene()
scene.add_body("a", sh.Box(1, 1, 1), mas=2.0)  # wrong
scene.add_body("b", sh.Box(1, 1, 1), densty=2.0)  # wrong
scene.add_body("c", sh.Box(1, 1, 1), postion=(0, 0, 0))  # wrong
scene.add_body("d", sh.Box(1, 1, 1), motion="kinetic")  # wrong
scene.add_body("e", sh.Bx(1, 1, 1))  # wrong
scene.ad_body("f", sh.Sphere(0.1))  # wrong
scene.add_joint("j", sh.Revolute("y", limt=(0, 1)), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("k", sh.Revolute("y", frictoin=1.0), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("l", sh.Prismatic("y", sprng=(1.0, 0.0)), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("m", sh.Spherical(dampng=1.0), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("n", sh.Revolute("y", driv=sh.Servo()), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("o", sh.Revolute("y", drive=sh.Servo(kpp=1.0)), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("p", sh.Revolute("y", drive=sh.DCMotor(resistence=1.0)), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("q", sh.Revolute("y", friction=sh.Friction(statik=1.0)), "world", "a", position=(0, 0, 0))  # wrong
scene.add_joint("r", sh.Revolute("y"), "world", "a", posiion=(0, 0, 0))  # wrong
scene.add_joint("s", sh.Revolute("y"), "world", "a", position=(0, 0, 0), break_forc=1.0)  # wrong
scene.add_joint("t", sh.Revolut("y"), "world", "a", position=(0, 0, 0))  # wrong
scene.add_spring("u", "a", "b", stifness=1.0)  # wrong
scene.add_rope("v", (0, 0, 0), (1, 0, 0), segmnts=10)  # wrong
scene.add_rope("w", (0, 0, 0), (1, 0, 0), reel="begin")  # wrong
sim = sh.Simulation(scene, 1e-3, iteratons=3)  # wrong
sim = sh.Simulation(scene, 1e-3, solver="drect")  # wrong
sim = sh.Simulation(scene, 1e-3, tolerence=1e-9)  # wrong
sim = sh.Simulation(scene, 1e-3, on_divergence="rais")  # wrong
sim = sh.Simulation(scene, 1e-3, world=3)  # wrong
sim.timestep = 2e-3  # wrong
sim.gravty = (0, 0, 0)  # wrong
sim.body("a").postion = (0, 0, 0)  # wrong
sim.body("a").velocty = (0, 0, 0)  # wrong
sim.body("a").aply_force((0, 0, 1))  # wrong
sim.body("a").apply_force((0, 0, 1), onc=False)  # wrong
sim.joint("j").postion = 0.1  # wrong
sim.joint("j").velocit = 0.1  # wrong
sim.joint("j").drive.positon = 0.1  # wrong
sim.joint("j").drive.kdd = 0.1  # wrong
sim.rope("v").reel_sped = 0.1  # wrong
sim.target.positions[0] = 0.1  # wrong
print(sim.energy().kinetik)  # wrong
print(sim.healt())  # wrong
