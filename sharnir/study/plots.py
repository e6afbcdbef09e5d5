"""Plots of a study, and its report."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.errors import SimulationError

MAX_LINES = 2000  # lines or points that are drawn; evenly taken where there are more
PLOT_KINDS = ("curves", "heat", "parallel")
Result = Any  # the StudyResult, which calls here


def draw(result: Result, kind: str | None, path: str | Path | None, measure: str | None) -> Any:
    """One plot, as a figure or a file."""
    kind = kind or ("curves", "heat", "parallel")[min(2, len(result.varied) - 1)]
    if kind not in PLOT_KINDS:
        raise SimulationError(f"plot: kind is one of {', '.join(map(repr, PLOT_KINDS))}, got {kind!r}")
    measure = measure or result.measured[0]
    if measure not in result.measured:
        raise SimulationError(f"plot: {measure!r} was not measured; there are: {', '.join(result.measured)}")
    if kind == "heat" and len(result.varied) < 2:
        raise SimulationError(f"plot: a heat map needs two varied words, there is {result.varied[0]!r}")
    figure = {"curves": _curves, "heat": _heat, "parallel": _parallel}[kind](result, measure)
    if path is None:
        return figure
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return Path(path)


def _figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    figure = need("matplotlib.figure", "study").Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _curves(result: Result, measure: str) -> Any:
    """A measure over each varied value; with one alone a line, else points with the mean of 20 bins."""
    figure, axes = _figure(1, len(result.varied), 1 + 4 * len(result.varied), 3.5)
    y = result[measure]
    for axis, word in zip(axes[0], result.varied, strict=True):
        x = result[word]
        if len(result.varied) == 1 and len(np.unique(x)) == len(x):
            order = np.argsort(x)
            axis.plot(x[order], y[order], ".-", markersize=3, linewidth=1)
        else:
            some = _some(len(x))
            axis.plot(x[some], y[some], ".", markersize=2, alpha=0.5)
            edges = np.linspace(x.min(), x.max(), 21)
            bins, good = np.clip(np.digitize(x, edges) - 1, 0, 19), np.isfinite(y)
            filled = [k for k in range(20) if (good & (bins == k)).any()]
            means = [y[good & (bins == k)].mean() for k in filled]
            axis.plot([x[good & (bins == k)].mean() for k in filled], means, "-", linewidth=1.5)
        axis.set_xlabel(word)
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(measure)
    return figure


def _heat(result: Result, measure: str) -> Any:
    """A measure over the first two varied words: the grid itself, or the mean in 30 × 30 cells."""
    figure, axes = _figure(1, 1, 6, 4.5)
    (a, b), z = (result[word] for word in result.varied[:2]), result[measure]
    good = np.isfinite(z)
    xs, ys = np.unique(a), np.unique(b)
    if len(xs) * len(ys) > 4 * len(a):
        xs, ys = (np.linspace(v.min(), v.max(), 30) for v in (a, b))
    i, j = (
        np.abs(v[good][:, None] - at[None]).argmin(1) if len(at) < 200 else np.searchsorted(at, v[good])
        for v, at in ((a, xs), (b, ys))
    )
    sums, counts = np.zeros((len(ys), len(xs))), np.zeros((len(ys), len(xs)))
    np.add.at(sums, (j, i), z[good])
    np.add.at(counts, (j, i), 1)
    with np.errstate(invalid="ignore"):
        picture = axes[0, 0].pcolormesh(xs, ys, sums / counts, shading="nearest")
    figure.colorbar(picture, label=measure)
    axes[0, 0].set_xlabel(result.varied[0])
    axes[0, 0].set_ylabel(result.varied[1])
    return figure


def _parallel(result: Result, measure: str) -> Any:
    """A line a run over all varied words and measures, each from its least to its largest; coloured by one measure."""
    names = [*result.varied, *result.measured]
    figure, axes = _figure(1, 1, 2 + 1.6 * len(names), 4)
    axis, z = axes[0, 0], result[measure]
    some = _some(len(z))
    some = some[np.isfinite(z[some])]
    table, labels = [], []
    for name in names:
        values = result[name].astype(float)
        low, high = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (0.0, 1.0)
        table.append((values[some] - low) / ((high - low) or 1.0))
        labels.append(f"{name}\n{low:.3g} … {high:.3g}")
    colours = need("matplotlib", "study").colormaps["viridis"](table[names.index(measure)])
    lines = [np.column_stack([np.arange(len(names)), row]) for row in np.array(table).T]
    axis.add_collection(need("matplotlib.collections", "study").LineCollection(lines, colors=colours, linewidths=0.7, alpha=0.6))
    axis.set_xlim(-0.1, len(names) - 0.9)
    axis.set_ylim(-0.03, 1.03)
    axis.set_xticks(range(len(names)), labels, fontsize="small")
    axis.set_yticks([])
    axis.grid(axis="x")
    return figure


def _some(count: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(count, MAX_LINES)).astype(int))


def report(result: Result, path: Path, title: str) -> Path:
    """One HTML file with all of it."""
    failed = result.failed
    parts = [
        f"<p>{len(result)} runs, {len(failed)} failed.</p>",
        "<table><tr><th></th><th>least</th><th>mean</th><th>largest</th></tr>",
    ]
    for name in [*result.varied, *result.measured]:
        column = result[name].astype(float)
        numbers = (
            (f(column[np.isfinite(column)]) for f in (np.min, np.mean, np.max)) if np.isfinite(column).any() else [np.nan] * 3
        )
        parts.append(f"<tr><td>{html.escape(name)}</td>" + "".join(f"<td>{n:.6g}</td>" for n in numbers) + "</tr>")
    parts.append("</table>")
    for measure in result.measured:
        if not np.isfinite(result[measure]).any():
            continue
        parts.append(f"<h2>{html.escape(measure)}</h2>")
        parts += [_picture(draw(result, kind, None, measure)) for kind in PLOT_KINDS if kind != "heat" or len(result.varied) > 1]
    if failed:
        rows = "".join(f"<tr><td>{run}</td><td>{html.escape(why)}</td></tr>" for run, why in list(failed.items())[:100])
        parts.append(f"<h2>Runs that failed</h2><table><tr><th>run</th><th>why</th></tr>{rows}</table>")
    style = "body{font-family:sans-serif;margin:2em;max-width:70em}td,th{padding:.2em 1em;text-align:left}img{max-width:100%}"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}<h1>{html.escape(title)}</h1>\n" + "\n".join(parts) + "</html>\n", encoding="utf-8")
    return path


def _picture(figure: Any) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=100)
    return f'<p><img alt="" src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"></p>'
