"""The `sharnir` command: what can be said on a command line; what it does is in `commands`, imported when it is needed."""

from __future__ import annotations

import argparse
import importlib
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import sharnir
from sharnir.cli.examples import UsageError
from sharnir.core.extras import MissingExtra
from sharnir.core.misspellings import meant
from sharnir.errors import SceneError, SimulationError

EXAMPLES = """examples:
  sharnir demo                                  plots, and one HTML file of a machine at work
  sharnir view four_bar                         an example in the browser
  sharnir view krt100_trailer --html out.html   one file that anybody can open and scrub
  sharnir drive mf4_door --record run.mcap      sit at the controls; the instructor's page is beside
  sharnir replay run.mcap                       the same motion again, compared bit for bit
  sharnir score set_down --drive                an exercise, with a protocol at the end
  sharnir check my_scene.toml                   everything that is wrong with a scene file
"""


def _renamed(arguments: Sequence[str] | None) -> Sequence[str]:
    """The words of a command line, the command of 0.2.0 by its new name."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["sweep"]:
        sys.stderr.write("sharnir: the command sweep is now study; the former name goes in 0.4.0\n")
        words[0] = "study"
    return words


class Parser(argparse.ArgumentParser):
    """A parser that says what a misspelt word probably stands for."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, left = super().parse_known_args(args, namespace)
        wrong = next((word for word in left if word.startswith("--")), None)
        if wrong is not None:
            options = list(dict.fromkeys(re.findall(r"--([a-z][a-z-]*)", self.format_help())))
            self.error(f"there is no option {wrong}{meant(wrong[2:], options)}; there are {', '.join(options)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        super().error(message + (meant(wrong[1], re.findall(r"[\w-]+", wrong[2])) if wrong else ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 for a failure, 2 for a wrong word on the command line."""
    parser = Parser(
        prog="sharnir", description="Real-time dynamics of jointed bodies and ropes.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"sharnir {sharnir.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    info = commands.add_parser("info", help="what is installed, which examples there are, or what one is made of")
    info.add_argument("name", nargs="?", help="an example, or a file (.toml, .urdf, .xml)")
    info.add_argument("--compile", action="store_true", help="compile the kernels that most scenes need now")
    _takes_values(info)
    info.set_defaults(run=lambda a: _commands().info(a.name, a.compile, a.set, a.root))

    run = commands.add_parser("run", help="run an example and its check, or a scene file for a while")
    run.add_argument("name", help="an example, or a file (.toml, .urdf, .xml)")
    run.add_argument("--duration", type=_positive, default=5.0, metavar="S", help="of a file, s (default: 5)")
    _takes_values(run)
    run.set_defaults(run=lambda a: _commands().run(a.name, a.duration, a.set, a.root))

    check = commands.add_parser("check", help="everything that is wrong with a scene file, with lines")
    check.add_argument("file", type=Path, nargs="+", help=".toml, .urdf or .xml")
    _takes_values(check)
    check.set_defaults(run=lambda a: _commands().check(a.file, a.set, a.root))

    demo = commands.add_parser("demo", help="simulate a door and a chain, print a table, draw plots")
    demo.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the plots (default: ./out)")
    demo.set_defaults(run=lambda a: _commands().demo(a.out))

    _add_view(commands)
    _add_desk(commands)
    _add_machine(commands)

    _add_recording(commands)

    words = "what a step size costs: an example by the sequential and the direct method beside an integration to many digits"
    compare = commands.add_parser("compare", help=words)
    compare.add_argument("name", help="an example without a kinematic path")
    compare.add_argument("--duration", type=_positive, default=1.0, metavar="S", help="s (default: 1)")
    compare.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the plot (default: ./out)")
    compare.set_defaults(run=lambda a: _commands().compare(a.name, a.duration, a.out))

    study = commands.add_parser("study", help="run a scene with many values of its parameters, and measure each run")
    study.add_argument(
        "name",
        help="an example; a .py file with build(), make(worlds) or make(), or a variable scene; or a .toml, .urdf, .xml",
    )
    words = "such as joint/hinge.friction=0.1:2:20, body/door.mass=10,20 or, where values are drawn, 0.1:2; again for more"
    study.add_argument("--vary", metavar="WORD=VALUES", action="append", required=True, help=words)
    words = "such as joint/hinge.q, max(joint/hinge.qd), or a function of the file; again for more"
    study.add_argument("--measure", metavar="WORD", action="append", required=True, help=words)
    study.add_argument("--out", type=Path, default=Path("results.parquet"), help="the table (default: ./results.parquet)")
    study.add_argument("--report", type=Path, metavar="HTML", help="one HTML file with plots")
    study.add_argument("--duration", type=_positive, metavar="S", help="of a run, s; without it a function makes the run")
    study.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the scene file's, or 0.001)")
    study.add_argument("--sampling", default="grid", help="grid, list, random, sobol or latin (default: grid)")
    study.add_argument("--executor", default="local", help="local or ray (default: local)")
    study.add_argument("--address", help="of a Ray cluster")
    for word in ("runs", "seed", "workers", "chunk", "repeats"):
        study.add_argument(f"--{word}", type=int, default=argparse.SUPPRESS, metavar="N")
    study.set_defaults(run=lambda a: importlib.import_module("sharnir.cli.study_command").study(vars(a)))

    try:
        chosen = parser.parse_args(_renamed(arguments))
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


def _add_recording(commands: Any) -> None:
    """record and replay."""
    record = commands.add_parser("record", help="run an example or a file of your own, and record it (MCAP, opens in Foxglove)")
    record.add_argument("name", help="an example, or a .py, .toml or .urdf file, as for view")
    record.add_argument("--out", type=Path, metavar="FILE", help="(default: NAME.mcap)")
    record.add_argument("--duration", type=_positive, default=10.0, metavar="S", help="simulated time, s (default: 10)")
    record.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own, or 0.001)")
    record.add_argument("--rate", type=_positive, default=60.0, metavar="HZ", help="of what is looked at (default: 60)")
    record.add_argument("--real-time", action="store_true", help="at the pace of the wall clock, and report its timing")
    _takes_roots(record)
    record.set_defaults(run=lambda a: _part("record").record(a.name, a.out, a.duration, a.dt, a.rate, a.real_time, a.root))

    words = "make a recorded motion again from its commands, and say whether it is the same, bit for bit"
    replay = commands.add_parser("replay", help=words)
    replay.add_argument("file", type=Path, help="a recording (.mcap)")
    replay.add_argument("--scene", metavar="NAME", help="an example or a file, instead of the scene in the recording")
    replay.add_argument("--plot", type=Path, metavar="FILE", help="draw what was recorded (.png, .svg)")
    replay.add_argument("--csv", type=Path, metavar="FILE", help="write what was recorded as a table")
    replay.add_argument("--usd", type=Path, metavar="FILE", help="write bodies and ropes in motion (.usda, .usdc, .usdz)")
    _takes_trust(replay)
    _takes_roots(replay)
    replay.set_defaults(run=lambda a: _part("record").replay(a.file, a.scene, a.plot, a.csv, a.usd, a.trust, a.root))


def _add_view(commands: Any) -> None:
    """view."""
    view = commands.add_parser("view", help="show an example, a scene of your own or a robot in the browser")
    words = "an example, a .py file with a function make(dt) or build(), or a variable sim or scene, or a file .toml, .urdf, .xml"
    view.add_argument("name", help=words)
    view.add_argument("--port", type=_port, default=8080, help="of the page (default: 8080)")
    view.add_argument("--host", default="127.0.0.1", help="address of the page (default: 127.0.0.1, this machine alone)")
    view.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own, or 0.001)")
    view.add_argument("--speed", type=_positive, default=1.0, help="simulated seconds per second (default: 1)")
    view.add_argument("--paused", action="store_true", help="wait for Play")
    view.add_argument("--follow", metavar="BODY", help="move the picture along with a body")
    view.add_argument("--camera", choices=("all", "front", "side", "top"), default="all", help="from where all is seen at first")
    view.add_argument("--theme", choices=("light", "dark"), default="light", help="of sky, ground and panel (default: light)")
    view.add_argument(
        "--plot", metavar="VALUE", action="append", default=[], help="such as joint/hinge.q or sim.energy; again for more"
    )
    view.add_argument("--html", type=Path, metavar="FILE", help="write one HTML file to open and scrub; also of a recording")
    view.add_argument("--duration", type=_positive, default=10.0, metavar="S", help="of the motion in that file, s (default: 10)")
    _takes_values(view)
    _takes_trust(view)
    page = ("port", "host", "speed", "paused", "follow", "plot", "camera", "theme")
    view.set_defaults(
        run=lambda a: (
            _commands().view(a.name, a.dt, {word: getattr(a, word) for word in page}, a.set, a.root)
            if a.html is None
            else _commands().html(a.name, a.dt, a.html, a.duration, a.follow, a.set, a.root, a.trust)
        )
    )


def _add_desk(commands: Any) -> None:
    """drive and score."""
    words = "sit at the controls of a machine in the browser: keys, a gamepad, sliders; and an instructor's page beside it"
    drive = commands.add_parser("drive", help=words)
    drive.add_argument("name", help="an example with inputs (mf4_door, krt100_trailer, mobile_crane, …), or a file of your own")
    drive.add_argument("--port", type=_port, default=8080, help="of the page (default: 8080)")
    drive.add_argument("--host", default="127.0.0.1", help="address of the page (default: 127.0.0.1, this machine alone)")
    drive.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own, or 0.001)")
    drive.add_argument("--follow", metavar="BODY", help="move the picture along with a body")
    drive.add_argument("--record", type=Path, metavar="FILE", help="keep all that happens (.mcap), for `sharnir replay`")
    _takes_values(drive)
    desk = ("port", "host", "follow")
    drive.set_defaults(
        run=lambda a: _commands().drive(a.name, a.dt, {word: getattr(a, word) for word in desk}, a.set, a.record, a.root)
    )

    words = "do an exercise: by its automatic driver, or (--drive) in the browser; writes a protocol with plots"
    score = commands.add_parser("score", help=words)
    score.add_argument("name", nargs="?", help="of an exercise; all are listed without one")
    score.add_argument("--drive", action="store_true", help="sit at the controls yourself")
    score.add_argument("--port", type=_port, default=8080, help="of the page (default: 8080)")
    score.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="folder of the protocol (default: ./out)")
    score.set_defaults(run=lambda a: _commands().score(a.name, a.out, a.drive, a.port))


def _add_machine(commands: Any) -> None:
    """warmup and bench."""
    warmup = commands.add_parser("warmup", help="compile all kernels now, so that nothing has to wait for it later")
    warmup.add_argument("--device", default="cpu", help='"cpu" (the default) or "cuda:0"')
    warmup.add_argument("--into", metavar="DIR", help="a folder for them, to be copied to other machines (WARP_CACHE_PATH)")
    warmup.set_defaults(run=lambda a: _commands().warmup(a.device, a.into))

    bench = commands.add_parser("bench", help="what a step of an example, or of a file of your own, takes on this machine")
    bench.add_argument("name", help="an example, or a file as for view")
    bench.add_argument("--duration", type=_positive, default=2.0, metavar="S", help="simulated time, s (default: 2)")
    bench.add_argument("--dt", type=_positive, metavar="S", help="step, s (default: the example's own, or 0.001)")
    _takes_values(bench)
    bench.set_defaults(run=lambda a: _commands().bench(a.name, a.duration, a.dt, a.set, a.root))


def _commands() -> ModuleType:
    """What the commands do; imported when one is given, since it takes seconds."""
    return importlib.import_module("sharnir.cli.commands")


def _takes_values(parser: argparse.ArgumentParser) -> None:
    words = "a parameter of a .toml file, such as mass=12; again for more"
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=words)
    _takes_roots(parser)


def _takes_roots(parser: argparse.ArgumentParser) -> None:
    words = "a folder from which a scene file may read other files; again for more (default: the file's own alone)"
    parser.add_argument("--root", metavar="DIR", type=Path, action="append", default=[], help=words)


def _takes_trust(parser: argparse.ArgumentParser) -> None:
    words = "run or read the file that a recording names as its scene; only for recordings of people you trust"
    parser.add_argument("--trust", action="store_true", help=words)


def _part(name: str) -> ModuleType:
    """Commands that have a file of their own."""
    return importlib.import_module(f"sharnir.cli.{name}_commands")


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
