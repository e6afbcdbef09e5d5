"""The `sharnir` command: info, run, check, demo, view, compare."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import sharnir
from sharnir.catalogue import UsageError
from sharnir.errors import SceneError, SimulationError
from sharnir.view import MissingExtra


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for a failure, 2 for a wrong word on the command line."""
    parser = argparse.ArgumentParser(prog="sharnir", description="Real-time dynamics of jointed bodies and ropes.")
    parser.add_argument("--version", action="version", version=f"sharnir {sharnir.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    info = commands.add_parser("info", help="what is installed, which examples there are, or what one is made of")
    info.add_argument("name", nargs="?", help="an example, or a file (.toml, .urdf, .xml)")
    info.add_argument("--compile", action="store_true", help="compile the kernels for the CPU now")
    _takes_values(info)
    info.set_defaults(run=lambda a: _commands().info(a.name, a.compile, a.set))

    run = commands.add_parser("run", help="run an example and its check, or a scene file for a while")
    run.add_argument("name", help="an example, or a file (.toml, .urdf, .xml)")
    run.add_argument("--duration", type=_positive, default=5.0, metavar="S", help="of a file, s (default: 5)")
    _takes_values(run)
    run.set_defaults(run=lambda a: _commands().run(a.name, a.duration, a.set))

    check = commands.add_parser("check", help="everything that is wrong with a scene file, with lines")
    check.add_argument("file", type=Path, nargs="+", help=".toml, .urdf or .xml")
    _takes_values(check)
    check.set_defaults(run=lambda a: _commands().check(a.file, a.set))

    demo = commands.add_parser("demo", help="simulate a door and a chain, print a table, draw plots")
    demo.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the plots (default: ./out)")
    demo.set_defaults(run=lambda a: _commands().demo(a.out))

    view = commands.add_parser("view", help="show an example, a scene of your own or a robot in the browser")
    words = "an example, a .py file with a function make(dt) or build(), or a variable sim or scene, or a file .toml, .urdf, .xml"
    view.add_argument("name", help=words)
    view.add_argument("--port", type=_port, default=8080, help="of the page (default: 8080)")
    view.add_argument("--host", default="127.0.0.1", help="address of the page (default: 127.0.0.1, this machine alone)")
    view.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own, or 0.001)")
    view.add_argument("--speed", type=_positive, default=1.0, help="simulated seconds per second (default: 1)")
    view.add_argument("--paused", action="store_true", help="wait for Play")
    view.add_argument("--follow", metavar="BODY", help="move the picture along with a body")
    view.add_argument(
        "--plot", metavar="VALUE", action="append", default=[], help="such as joint/hinge.q or sim.energy; again for more"
    )
    _takes_values(view)
    page = ("port", "host", "speed", "paused", "follow", "plot")
    view.set_defaults(run=lambda a: _commands().view(a.name, a.dt, {word: getattr(a, word) for word in page}, a.set))

    words = "sit at the controls of a machine in the browser: keys, a gamepad, sliders; and an instructor's page beside it"
    drive = commands.add_parser("drive", help=words)
    drive.add_argument("name", help="an example with controls (mf4_door, krt100_trailer, mobile_crane, …), or a file of your own")
    drive.add_argument("--port", type=_port, default=8080, help="of the page (default: 8080)")
    drive.add_argument("--host", default="127.0.0.1", help="address of the page (default: 127.0.0.1, this machine alone)")
    drive.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own, or 0.001)")
    drive.add_argument("--follow", metavar="BODY", help="move the picture along with a body")
    _takes_values(drive)
    desk = ("port", "host", "follow")
    drive.set_defaults(run=lambda a: _commands().drive(a.name, a.dt, {word: getattr(a, word) for word in desk}, a.set))

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


def _takes_values(parser: argparse.ArgumentParser) -> None:
    words = "a parameter of a .toml file, such as mass=12; again for more"
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=words)


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


if __name__ == "__main__":
    sys.exit(main())
