"""What a step of a tree costs, counted: floating-point operations, passes, processor instructions, registers on a GPU.

Operations are counted while the step computes with Python floats; instructions by Valgrind's callgrind (where it is installed),
with the emitted code that a runner has; registers, memory and instructions on a GPU from the specialized steps of simulations,
compiled ahead for sm_90 in the precision of SHARNIR_PRECISION, which needs nvdisasm but no GPU. None of these depends on how busy
the machine is.

Run: python -m benchmarks.cost [--instructions] [--gpu] [NAME ...]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import sharnir as sh
from benchmarks import gpu
from benchmarks.trees import ARM, ARM_LAWS, ARM_MASSES, FRICTION, H, balls, bent, hinges, reset
from benchmarks.trees import scene as chain_of
from sharnir.core.types import PRECISION
from sharnir.engine.tree.build import Plan
from sharnir.engine.tree.forest import Forest
from sharnir.engine.tree.kernel import TreeRunner
from sharnir.engine.tree.number_tree import NumberTree
from sharnir.engine.tree.special import Specialized
from sharnir.engine.tree.step import step
from sharnir.engine.tree.storage import TOLERANCE

STEPS = 50
INSTRUCTION = r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?([A-Z0-9_]+)"
SCENES = {
    "10 hinges": lambda: chain_of("yz" * 5),
    "arm": gpu.ARM.scene,
    "ten balls": gpu.BALLS.scene,
    "ten balls, friction": gpu.RUBBED.scene,
}


class Counted(float):
    """A number that counts the operations with it."""

    operations = 0


def _operation(name: str) -> Any:
    compute = getattr(float, name)

    def apply(self: float, *other: float) -> Any:
        x = compute(self, *other)
        if x is NotImplemented:
            return x
        Counted.operations += 1
        return Counted(x)

    return apply


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(Counted, f"__{_name}__", _operation(f"__{_name}__"))


def cases() -> dict[str, Forest]:
    """Trees by name."""
    out = {}
    for n in (10, 30, 100):
        axes = ("yz" * n)[:n]
        out[f"{n} hinges"], out[f"{n} hinges, friction"], out[f"{n} balls"] = (
            hinges(axes),
            hinges(axes, None, **FRICTION),
            balls(n),
        )
    return out | {"arm": hinges(ARM, ARM_MASSES, **ARM_LAWS, servo_position=0.5)}


def operations(forest: Forest, steps: int = 10) -> tuple[float, float]:
    """Floating-point operations and passes of a step."""
    tree = NumberTree(forest, H, own_axes=False, tolerance=TOLERANCE["double"])
    for i, q in enumerate(bent(len(forest))):
        about = np.array([0.0, 1.0, 0.0]) if i % 2 == 0 else np.array([0.0, 0.0, 1.0])
        tree.fields[i]["q"], tree.fields[i]["rotation"] = [q], [*(np.sin(q / 2) * about), np.cos(q / 2)]
    tree.place()
    for f in tree.fields:
        for name, values in f.items():
            f[name] = [Counted(x) for x in values]
    for _ in range(5):
        step(tree)
    Counted.operations = tree.passes = 0
    for _ in range(steps):
        step(tree)
    return Counted.operations / steps, tree.passes / steps


def instructions(name: str) -> float:
    """Processor instructions of a step, in a process of its own under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            f"--callgrind-out-file={out}",
            sys.executable,
            "-m",
            __spec__.name,
        ]
        subprocess.run([*command, "--counted", name], check=True, capture_output=True)
        found = re.search(r"^totals: (\d+)", out.read_text(), re.M)
        assert found, "callgrind says how many instructions it saw"
        return int(found[1]) / STEPS


def counted(name: str) -> None:
    """The run that callgrind watches: only the steps."""
    runner = TreeRunner(cases()[name], H)
    reset(runner, name == "arm")
    runner.step(STEPS)
    control = ["callgrind_control", "-i"]
    subprocess.run([*control, "on", str(os.getpid())], check=True, capture_output=True)
    runner.step(STEPS)
    subprocess.run([*control, "off", str(os.getpid())], check=True, capture_output=True)


def on_gpu(scene: sh.Scene) -> str:
    """Registers, memory and instructions of the specialized steps of a simulation on sm_90."""
    sim = sh.Simulation(scene, H, specialize=False)
    special = Specialized(Plan(sim.model), sim.model, sim.commands, True)
    with tempfile.TemporaryDirectory() as folder:
        wp.compile_aot_module(special.kernel(256).module, arch=90, module_dir=folder, use_ptx=False)
        code = subprocess.run(["nvdisasm", next(Path(folder).glob("*.cubin"))], check=True, capture_output=True, text=True).stdout
    sizes = r"EIATTR_(?:REGCOUNT|MIN_STACK_SIZE)(?:(?!EIATTR).)*?index(?:(?!EIATTR).)*?\.word\s+0x([0-9a-f]+)"
    registers, stack = (int(x, 16) for x in re.findall(sizes, code, re.S))
    shared = len(re.findall(r"#define \w+ shared_number\(\d", special.body))
    parts = [tally(code)] + [f"in the passes {tally(x)}" for x in loops(code)[:1]]
    return (
        f"{registers} registers, {stack} B of local memory, {shared} numbers shared, {special.scratch} global; {'; '.join(parts)}"
    )


def tally(code: str) -> str:
    """How many instructions of which kinds."""
    operations = re.findall(INSTRUCTION, code)
    floating = sum(op[:2] in ("FF", "FM", "FA", "DF", "DM", "DA", "MU") for op in operations)
    loads, stores = (sum(op == x for op in operations) for x in ("LDL", "STL"))
    return f"{len(operations)} instructions, {floating} floating-point, {loads} local loads, {stores} local stores"


def loops(code: str) -> list[str]:
    """The code of loops that are longer than a thousand instructions, the shortest first."""
    lines = code.split("\n")
    labels = {found[1]: k for k, line in enumerate(lines) if (found := re.match(r"\s*(\.L_x_\d+):", line))}
    out = []
    for k, line in enumerate(lines):
        jump = re.search(r"\bBRA\b.*?(\.L_x_\d+)", line)
        if jump and labels.get(jump[1], len(lines)) <= k - 1000:
            out.append("\n".join(lines[labels[jump[1]] : k]))
    return sorted(out, key=len)


def main(arguments: list[str]) -> None:
    """Print a table."""
    wp.config.quiet = True
    names = [a for a in arguments if not a.startswith("--")]
    if "--counted" in arguments:
        counted(names[0])
        return
    if "--gpu" in arguments:
        for name, scene in SCENES.items():
            if not names or name in names:
                print(f"{name:22s} {PRECISION:7s} {on_gpu(scene())}", flush=True)
        return
    watch = "--instructions" in arguments and shutil.which("valgrind")
    for name, forest in cases().items():
        if names and name not in names:
            continue
        flops, passes = operations(forest)
        line = f"{name:22s} {flops:9.0f} operations ({flops / len(forest):6.0f} per link), {passes:.1f} passes"
        if watch:
            count = instructions(name)
            line += f", {count:9.0f} instructions, {flops / count:.2f} operations per instruction"
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
