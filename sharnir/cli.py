"""The `sharnir` command: info, run, demo, view, compare."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import sharnir
from sharnir.errors import SceneError, SimulationError
from sharnir.view import MissingExtra

HEADINGS = ("scene", "time, s", "steps", "µs/step", "× real time", "largest gap, m", "energy drift, %", "above tolerance")


class UsageError(Exception):
    """A wrong word on the command line, told in one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for a failure, 2 for a wrong word on the command line."""
    parser = argparse.ArgumentParser(prog="sharnir", description="Real-time dynamics of jointed bodies and ropes.")
    parser.add_argument("--version", action="version", version=f"sharnir {sharnir.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    info = commands.add_parser("info", help="what is installed, which examples there are, or what one is made of")
    info.add_argument("name", nargs="?", help="an example")
    info.add_argument("--compile", action="store_true", help="compile the kernels for the CPU now")
    info.set_defaults(run=lambda a: _commands().info(a.name, a.compile))

    run = commands.add_parser("run", help="run an example and its check")
    run.add_argument("name", help="an example")
    run.set_defaults(run=lambda a: _commands().run(a.name))

    demo = commands.add_parser("demo", help="simulate a door and a chain, print a table, draw plots")
    demo.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the plots (default: ./out)")
    demo.set_defaults(run=lambda a: _commands().demo(a.out))

    view = commands.add_parser("view", help="show an example in the browser")
    view.add_argument("name", help="an example")
    view.add_argument("--port", type=_port, default=8080, help="of http://127.0.0.1 (default: 8080)")
    view.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own)")
    view.add_argument("--speed", type=_positive, default=1.0, help="simulated seconds per second (default: 1)")
    view.set_defaults(run=lambda a: _commands().view(a.name, a.port, a.dt, a.speed))

    words = "what a step size costs: an example by the sequential and the direct method beside an integration to many digits"
    compare = commands.add_parser("compare", help=words)
    compare.add_argument("name", help="an example without a kinematic path")
    compare.add_argument("--duration", type=_positive, default=1.0, metavar="S", help="s (default: 1)")
    compare.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the plot (default: ./out)")
    compare.set_defaults(run=lambda a: _commands().compare(a.name, a.duration, a.out))

    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has said what is wrong
        return int(end.code or 0)
    try:
        command: Callable[[argparse.Namespace], int] = chosen.run
        return command(chosen)
    except UsageError as error:
        sys.stderr.write(f"sharnir: {error}\n")
        return 2
    except (MissingExtra, SceneError, SimulationError, OSError) as error:
        sys.stderr.write(f"sharnir: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return 130


def _commands() -> ModuleType:
    """What the commands do; imported when one is given, since it takes seconds."""
    return importlib.import_module("sharnir.commands")


def _positive(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"a positive finite number, got {text}")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 < value < 65536:
        raise argparse.ArgumentTypeError(f"a port from 1 to 65535, got {text}")
    return value


# ---- examples ----


def example_folder() -> Path | None:
    """Where the examples are: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parent
    return next((f for f in (package.parent / "examples", package / "examples") if (f / "pendulum.py").is_file()), None)


def examples() -> dict[str, Path]:
    """The examples by name."""
    folder = example_folder()
    return {p.stem: p for p in sorted(folder.glob("[!_]*.py"))} if folder else {}


def load(name: str) -> ModuleType:
    """The module of an example: `make(dt)` builds its simulation, `check(sim)` runs and judges it."""
    known = examples()
    if name not in known:
        raise UsageError(f"no example is named {name!r}; there are: {', '.join(known) or 'none'}")
    spec = importlib.util.spec_from_file_location(f"sharnir_example_{name}", known[name])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def summary(path: Path) -> str:
    """The first line of an example's docstring, read without running it."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
