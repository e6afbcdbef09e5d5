"""Install the wheel in an environment of its own, and use it from elsewhere. `python -m build` makes the wheel from the sdist, so
that a file which the sdist lacks is missed here too.
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
TRY = """
import importlib, pathlib, sys
import sharnir as sh
from sharnir.cli import examples
from sharnir.core.extras import MissingExtra
assert "site-packages" in sh.__file__ and sh.__version__ == sys.argv[1], (sh.__file__, sh.__version__)
assert "winch_crane" in examples.examples() and "site-packages" in str(examples.example_folder())
root = pathlib.Path(sh.__file__).parent
found = [p.relative_to(root.parent) for p in root.rglob("*.py") if p.parent != root or p.name != "__init__.py"]
found = [p for p in found if "examples" not in p.parts]
for path in found:
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except MissingExtra as error:  # environments and motions of tensors are built on packages that are not here
        learns = name.startswith("sharnir.learn")
        needs = "sharnir[learn]" if learns else "torch" if name == "sharnir.study.tensors" else "nothing"
        assert needs in str(error), (name, str(error))
assert len(found) == int(sys.argv[2]), (len(found), sys.argv[2])
scene = sh.Scene()
scene.add_body("ball", sh.Sphere(0.1))
assert scene.build().body_names == {"world": 0, "ball": 1}
"""
FIRST = """
import os, pathlib, sys, time
import sharnir as sh
scene = sh.Scene()
if sys.argv[1] == "rope":
    scene.add_body("load", sh.Sphere(0.1), position=(0, 0, -1))
    scene.add_rope("rope", (0, 0, 0), (0, 0, -1), attach=("world", "load"))
elif sys.argv[1] == "pendulum":
    scene.add_body("bob", sh.Sphere(0.1), position=(1, 0, 0))
    scene.add_joint("hinge", sh.Revolute("y"), scene.world, "bob", position=(0, 0, 0))
else:
    scene.add_ground()
    scene.add_body("ball", sh.Sphere(0.1), position=(0, 0, 0.2))
sim = sh.Simulation(scene, 1e-3)
sim.step()
compiled = [path.name for path in pathlib.Path(os.environ["WARP_CACHE_PATH"]).rglob("wp_sharnir.*.cpp")]
assert not compiled, f"the wheel lacks {compiled}"
print(f"{time.process_time():.1f}")
"""
"""A first step with an empty cache: the wheel's kernels serve it."""


def first_steps(python: str, folder: str, environ: dict[str, str]) -> list[str]:
    """CPU seconds of processes that make a first step, each with a cache of its own."""
    took = []
    for scene in ("ball", "pendulum", "rope"):
        own = environ | {"WARP_CACHE_PATH": f"{folder}/cache {scene}"}
        took.append(subprocess.check_output([python, "-c", FIRST, scene], text=True, cwd=folder, env=own).strip())
    return took


def main() -> None:
    """What sharnir needs is lent by the environment that runs this; sharnir itself comes from the wheel."""
    started = time.perf_counter()
    wheel, sdist = (next((ROOT / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    version = wheel.name.split("-")[1]
    with tarfile.open(sdist) as packed:
        inside = packed.getnames()
    for file in ("README.md", "LICENSE", "CHANGELOG.md", "docs/index.md", "tests/test_docs.py", "examples/pendulum.py"):
        assert f"sharnir-{version}/{file}" in inside, f"{sdist.name} lacks {file}"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = f"{folder}/bin/python"
        words = [python, "-c", "import site; print(site.getsitepackages()[0])"]
        site = pathlib.Path(subprocess.check_output(words, text=True).strip())
        for module in ("numpy", "warp"):
            where = pathlib.Path(__import__(module).__file__ or "").parent
            for path in (where, *where.parent.glob(f"{module}.libs")):
                (site / path.name).symlink_to(path)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "-q", "--no-deps"]
        subprocess.run([*pip, str(wheel)], check=True, cwd=folder)
        modules = sum(1 for p in (ROOT / "sharnir").rglob("*.py") if p != ROOT / "sharnir" / "__init__.py")
        subprocess.run([python, "-c", TRY, version, str(modules)], check=True, cwd=folder, env=environ)
        packed = "-any." not in wheel.name
        took = ", ".join(first_steps(python, folder, environ)) if packed else ""
        told = subprocess.check_output([f"{folder}/bin/sharnir", "--version"], cwd=folder, env=environ, text=True)
        assert told.split() == ["sharnir", version], told
    print(
        f"dist: {wheel.name} and {sdist.name} install and import ({time.perf_counter() - started:.0f} s); "
        + (f"first steps with an empty cache in {took} s of CPU time" if packed else "it has no kernels")
    )


if __name__ == "__main__":
    main()
