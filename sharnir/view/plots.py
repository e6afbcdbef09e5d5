"""The demo's plots, written as PNG files; matplotlib is loaded when the first is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import need

INK, GRAY, FAINT = "#22303c", "#66737f", "#e4e8ec"
BLUE, ORANGE, GREEN = "#2f6db5", "#e07b39", "#3a9c76"

PLOT_STYLE: dict[str, Any] = {
    "figure.dpi": 110, "savefig.dpi": 110, "font.size": 10.5, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": GRAY, "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 10, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.8, "xtick.color": GRAY, "ytick.color": GRAY,
    "lines.linewidth": 1.8, "lines.solid_capstyle": "round", "legend.frameon": False,
}  # fmt: skip


def require() -> Any:
    """matplotlib, drawing into files; raises `MissingExtra` where it is not installed."""
    matplotlib = need("matplotlib", "view")
    matplotlib.use("Agg")
    return matplotlib


@contextmanager
def figure(path: Path, size: tuple[float, float], title: str, subtitle: str) -> Iterator[Any]:
    """A figure in the house style with a heading; saved to `path` at the end."""
    matplotlib = require()
    plt = need("matplotlib.pyplot", "view")
    with matplotlib.rc_context(PLOT_STYLE):
        fig = plt.figure(figsize=size, layout="constrained")
        try:
            fig.get_layout_engine().set(rect=(0.01, 0.01, 0.98, 0.97 - 0.62 / size[1]), w_pad=0.1, h_pad=0.08)
            fig.text(0.02, 1 - 0.30 / size[1], title, fontsize=15, fontweight="bold", va="center")
            fig.text(0.02, 1 - 0.56 / size[1], subtitle, color=GRAY, va="center")
            yield fig
            path.parent.mkdir(parents=True, exist_ok=True)
            fig.savefig(path)
        finally:
            plt.close(fig)


def door(path: Path, time: np.ndarray, angle: np.ndarray, speed: np.ndarray, pushed: float, subtitle: str) -> Path:
    """Figures 6 and 7 of the friction paper: angle (rad) and angular speed (rad/s) of a door with dry friction over time (s).

    It is pushed until the time `pushed`, coasts, and stands from where its speed is zero for good.
    """
    moving = np.flatnonzero(np.abs(speed) > 1e-9 * np.abs(speed).max(initial=0.0))
    stands = min(int(moving[-1]) + 1, len(time) - 1) if len(moving) else 0
    stop, last = float(time[stands]), float(np.degrees(angle[-1]))
    with figure(path, (8.0, 5.8), "Door with dry friction in its hinge", subtitle) as fig:
        upper, lower = fig.subplots(2, 1, sharex=True)
        for ax, values, colour, title, unit in (
            (upper, np.degrees(angle), BLUE, "Angle", "angle, °"),
            (lower, speed, ORANGE, "Angular speed", "speed, rad/s"),
        ):
            ax.axvspan(time[0], pushed, color=GREEN, alpha=0.1, linewidth=0)
            ax.axvspan(stop, time[-1], color=GRAY, alpha=0.08, linewidth=0)
            ax.axvline(stop, color=GRAY, linewidth=1.0, linestyle=(0, (4, 3)))
            ax.plot(time, values, color=colour, zorder=3)
            ax.plot(stop, values[stands], "o", color=colour, markersize=6.5, zorder=4, clip_on=False)
            ax.set(title=title, ylabel=unit)
            _room(ax, values, top=0.28)
        phases = (("pushed", time[0], pushed, GREEN), ("coasting", pushed, stop, INK), ("standing", stop, time[-1], GRAY))
        for ax in (upper, lower):
            for word, start, end, colour in phases:
                if end > start:
                    middle = ((start + end) / 2, 0.9)
                    ax.annotate(word, middle, xycoords=("data", "axes fraction"), ha="center", va="center", color=colour)
        beside = {"xytext": (10, -15), "textcoords": "offset points", "fontweight": "bold"}
        upper.annotate(f"stands at {stop:.2f} s after {last:.2f}°", (stop, last), color=BLUE, **beside)
        first = int(np.argmin(np.abs(time - pushed)))
        beside |= {"xytext": (9, -3)}
        lower.annotate(f"{speed[first]:.4f} rad/s", (time[first], speed[first]), color=ORANGE, **beside)
        lower.set(xlabel="time, s", xlim=(time[0], time[-1]))
        fig.align_ylabels()
    return path


def chain(path: Path, time: np.ndarray, points: np.ndarray, kinetic: np.ndarray, potential: np.ndarray, subtitle: str) -> Path:
    """A chain that swings in the x–z plane: snapshots that fade in with time, the tip's path, the energies.

    Args:
        time: (frames,) s.
        points: (frames, points, 2) x and z of the chain's nodes from its fixed end to its tip, m.
        kinetic, potential: (frames,) J.
    """
    matplotlib = require()
    collections = need("matplotlib.collections", "view")
    colours = matplotlib.colors.LinearSegmentedColormap.from_list("dusk", ["#c9dcec", "#6fa3cf", "#2f6db5", "#1b2f5b"])
    with figure(path, (11.0, 5.8), "Chain of ten rods", subtitle) as fig:
        grid = fig.add_gridspec(2, 2, width_ratios=(1.25, 1), height_ratios=(1.5, 1))
        ax = fig.add_subplot(grid[:, 0])
        shown = _evenly(time, 13, until=min(time[-1], 0.9))
        span = matplotlib.colors.Normalize(0.0, float(time[shown[-1]]))
        for i in shown:
            dark = float(span(time[i]))
            ax.plot(
                *points[i].T, "-o", color=colours(dark), alpha=0.35 + 0.65 * dark, linewidth=1.2 + 1.2 * dark,
                markersize=2.0 + 1.6 * dark, zorder=3,
            )  # fmt: skip
        path_end = int(shown[-1]) + 1
        tip = points[:path_end, -1]
        segments = np.stack([tip[:-1], tip[1:]], axis=1)
        ax.add_collection(collections.LineCollection(list(segments), colors=ORANGE, linewidths=1.6, alpha=0.9, zorder=2))
        ax.plot(*tip[-1], "o", color=ORANGE, markersize=7, zorder=5, label="tip and its path")
        ax.plot(*points[0, 0], "s", color=INK, markersize=7, zorder=5, label="fixed hinge")
        ax.set(xlabel="x, m", ylabel="z, m", title=f"Shape from 0 to {time[shown[-1]]:.1f} s")
        ax.set_aspect("equal", adjustable="datalim")
        ax.legend(loc="upper left", handletextpad=0.3)
        scale = matplotlib.cm.ScalarMappable(norm=span, cmap=colours)
        bar = fig.colorbar(scale, ax=ax, location="right", shrink=0.55, aspect=24, pad=0.02, label="time, s")
        bar.outline.set_visible(False)

        upper = fig.add_subplot(grid[0, 1])
        total = kinetic + potential
        for values, colour, label, width in (
            (kinetic, ORANGE, "kinetic", 1.6),
            (potential - potential[0], BLUE, "potential", 1.6),
            (total - potential[0], INK, "total", 2.2),
        ):
            upper.plot(time, values, color=colour, label=label, linewidth=width)
        upper.set(ylabel="energy, J", title="Energy (potential from the start)", xlim=(time[0], time[-1]))
        upper.tick_params(labelbottom=False)
        _room(upper, np.concatenate([kinetic, potential - potential[0]]), top=0.22)
        upper.legend(loc="upper center", ncols=3, handlelength=1.4)

        lower = fig.add_subplot(grid[1, 1], sharex=upper)
        change = 100 * (total - total[0]) / max(float(kinetic.max()), 1e-300)
        lower.plot(time, change, color=INK, linewidth=1.4)
        lower.fill_between(time, 0, change, color=INK, alpha=0.08, linewidth=0)
        lower.axhline(0, color=GRAY, linewidth=0.8)
        lower.set(xlabel="time, s", ylabel="drift, %", title="Energy drift, % of the peak kinetic")
        fig.align_ylabels([upper, lower])
    return path


def _evenly(time: np.ndarray, count: int, until: float) -> np.ndarray:
    """Indices of `count` frames evenly spaced from the first to the time `until`."""
    return np.unique(np.searchsorted(time, np.linspace(time[0], until, count) - 1e-9).clip(0, len(time) - 1))


def _room(ax: Any, values: np.ndarray, top: float = 0.12) -> None:
    """Limits that hold zero and all values, and do not blow up rounding where a value never changes."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    room = max(high - low, 1e-9)
    ax.set_ylim(low - (0.08 * room if low < -1e-6 * room else 0.0), high + top * room)


STYLES = ("o-", "s--", "^-.")  # of methods


def figure_of_errors(found: Any, path: Path) -> Path:
    """Errors of a `Comparison` over the step, a line style a method, beside a slope of first order; what failed is left out."""
    dt = np.array([row.dt for row in found.rows])
    methods = found.methods or {"": found.rows}
    words = " and ".join(filter(None, methods)) or "real-time solver"
    subtitle = f"{words} over {found.duration:g} s, against an integration in {found.reference_steps} steps"
    with figure(path, (10, 5.4), "What a step size costs", subtitle) as fig:
        left, right = fig.subplots(1, 2)
        places = (("position", "position, m", BLUE), ("gap", "joint gap, m or rad", GREEN))
        rest = (("energy", "energy, of its scale", ORANGE), ("reaction", "reaction, of the largest", INK))
        for ax, names in ((left, places), (right, rest)):
            top = 1e-16
            for rows, style in zip(methods.values(), STYLES, strict=False):
                for name, label, colour in names:
                    values = np.array([getattr(row, name) for row in rows])
                    values = np.where(np.isfinite(values), np.maximum(values, 1e-16), np.nan)
                    top = np.fmax(top, np.fmax.reduce(values))
                    ax.loglog(dt * 1e3, values, style, color=colour, label=label if rows is found.rows else None, markersize=4)
            for method, style in zip(filter(None, methods), STYLES, strict=False):
                ax.plot([], [], style, color=GRAY, label=method, markersize=4)
            ax.loglog(dt * 1e3, top * dt / dt.max(), ":", color=GRAY, label="first order", linewidth=1.0)
            ax.set_xlabel("step, ms")
            ax.set_xticks(dt * 1e3, [f"{x * 1e3:g}" for x in dt])
            ax.minorticks_off()
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        left.set_title("Place")
        right.set_title("Energy and reaction")
    return path
