"""The protocol of an exercise as one page: the verdict, goals, faults, plots (SVG) and what was done; nothing from elsewhere."""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import Any

import numpy as np

PAGE_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; color: #22303c; max-width: 900px; margin: 32px auto; padding: 0 20px }
h1 { font-size: 22px; margin: 0 } h2 { font-size: 15px; margin: 26px 0 6px } .quiet { color: #66737f }
.verdict { display: inline-block; border-radius: 8px; padding: 4px 14px; color: #fff; font-weight: 600; margin: 12px 0 }
table { border-collapse: collapse; width: 100% } td.n { text-align: right; font-variant-numeric: tabular-nums }
td, th { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid #e4e8ec; font-weight: 400 } th { color: #66737f }
svg { width: 100%; height: auto; display: block } .plots { display: grid; grid-template-columns: 1fr 1fr; gap: 14px }"""
PLOT_WIDE, PLOT_HIGH, PLOT_LEFT, PLOT_LOW = 430, 150, 52, 22  # pixels of a plot, and of its margins
SMALL_TEXT = 'font-size="10" fill="#66737f" text-anchor="end"'


def write(protocol: Any, path: Any) -> Path:
    """Write the page; returns its path."""
    e, p = protocol.exercise, protocol
    colour, word = ("#2e8b57", "passed") if p.passed else ("#b3362c", "not passed")
    goals = "".join(
        f"<tr><td>{_(g.title)}</td><td>{_(conditions(g))}</td><td class=n>"
        + (f"{p.reached[g.title]:.2f} s" if g.title in p.reached else "–")
        + "</td></tr>"
        for g in e.goals
    )
    faults = "".join(
        f"<tr><td>{t:.2f} s</td><td>{_(title)}</td><td class=n>−{points:g}</td></tr>" for t, title, points in p.faults
    )
    bands = {c.name: (c.low, c.high) for part in (*e.goals, *e.faults) for c in part.conditions}
    marks = [t for t, _title, _points in p.faults]
    plots = "".join(f"<figure style='margin:0'>{plot(n, p.times, v, bands.get(n), marks)}</figure>" for n, v in p.curves.items())
    events = "".join(
        f"<tr><td>{x.time:.2f} s</td><td>{_(x.kind)}</td><td>{_(x.name)}</td><td>{_(shown(x.value))}</td><td>{_(x.by)}</td></tr>"
        for x in p.events[-400:]
    )
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>{_(e.name)}: {word}</title><link rel="icon" href="data:,">
<style>{PAGE_STYLE}</style></head><body><h1>{_(e.name)}</h1><p class=quiet>{_(e.about)}</p>
<div class=verdict style="background:{colour}">{word} · {p.score:.0f} of 100</div>
<p>{p.time:.2f} s of {e.limit:g} s; {_(p.ended)}.</p>
<h2>Goals</h2><table><tr><th>what</th><th>within</th><th>reached</th></tr>{goals}</table>
<h2>Faults</h2>{f"<table>{faults}</table>" if faults else "<p>none</p>"}
<h2>Values over time, s</h2><div class=plots>{plots}</div>
<h2>What was done</h2><table>{events or "<tr><td>nothing</td></tr>"}</table></body></html>"""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")
    return file


def _(words: Any) -> str:
    return html.escape(str(words))


def shown(value: Any) -> str:
    """A value of an event in few words."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def conditions(goal: Any) -> str:
    """The conditions of a goal in words."""
    out = []
    for c in goal.conditions:
        low, high = math.isfinite(c.low), math.isfinite(c.high)
        span = f"{c.low:g} … {c.high:g}" if low and high else f"≥ {c.low:g}" if low else f"≤ {c.high:g}"
        out.append(f"{c.name} {span}")
    return ", ".join(out) + (f"; for {goal.hold:g} s" if goal.hold else "")


def plot(name: str, times: list[float], values: list[float], band: tuple[float, float] | None, marks: list[float]) -> str:
    """A curve as SVG, with the band that is allowed and the times of faults."""
    t, v = np.array(times), np.array(values)
    low, high = float(v.min(initial=0.0)), float(v.max(initial=0.0))
    for end in band or ():
        if math.isfinite(end):
            low, high = min(low, end), max(high, end)
    room = max(high - low, 1e-9)
    low, high, last = low - 0.06 * room, high + 0.06 * room, max(float(t[-1]) if len(t) else 1.0, 1e-9)

    def x(time: Any) -> Any:
        return PLOT_LEFT + (PLOT_WIDE - PLOT_LEFT - 8) * np.asarray(time) / last

    def y(value: Any) -> Any:
        return PLOT_HIGH - PLOT_LOW - (PLOT_HIGH - PLOT_LOW - 20) * (np.asarray(value) - low) / (high - low)

    parts = [f'<text x="{PLOT_LEFT}" y="12" font-size="11.5" fill="#22303c">{_(name)}</text>']
    if band is not None:
        top, bottom = float(y(min(max(band[1], low), high))), float(y(max(min(band[0], high), low)))
        tall = max(bottom - top, 1.0)
        parts.append(
            f'<rect x="{PLOT_LEFT}" y="{top:.1f}" width="{PLOT_WIDE - PLOT_LEFT - 8}" height="{tall:.1f}" '
            f'fill="#3a9c76" opacity="0.13"/>'
        )
    for value in (low + 0.06 * room, high - 0.06 * room):
        parts.append(f'<text x="{PLOT_LEFT - 5}" y="{float(y(value)) + 3.5:.1f}" {SMALL_TEXT}>{value:.3g}</text>')
    parts.append(f'<text x="{PLOT_WIDE - 8}" y="{PLOT_HIGH - 7}" {SMALL_TEXT}>{last:.3g} s</text>')
    for mark in marks:
        parts.append(
            f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="18" y2="{PLOT_HIGH - PLOT_LOW}" '
            f'stroke="#b3362c" stroke-dasharray="3 3"/>'
        )
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(np.atleast_1d(x(t)), np.atleast_1d(y(v)), strict=True))
    parts.append(
        f'<line x1="{PLOT_LEFT}" x2="{PLOT_WIDE - 8}" y1="{PLOT_HIGH - PLOT_LOW}" y2="{PLOT_HIGH - PLOT_LOW}" stroke="#cfd6dd"/>'
    )
    parts.append(f'<polyline points="{points}" fill="none" stroke="#2f6db5" stroke-width="1.6"/>')
    return f'<svg viewBox="0 0 {PLOT_WIDE} {PLOT_HIGH}" role="img">{"".join(parts)}</svg>'
