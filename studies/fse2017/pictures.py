"""Drawings for the HTML report: plain SVG, made from the same numbers as the tables."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

OURS, THEIRS, PALE = "#0b5394", "#b45f06", "#ccc"


@dataclass(frozen=True)
class ScoreLine:
    """A row of a drawing of scores: our interval, and the paper's number."""

    label: str
    score: float
    low: float
    high: float
    paper: float | None


def scores(title: str, lines: Sequence[ScoreLine]) -> str:
    """Our scores with intervals beside the paper's, from 0 to 100 %."""
    left, width, step, top = 190, 560, 20, 46
    height = top + step * len(lines) + 30

    def x(share: float) -> float:
        return left + width * share

    parts = [_text(0, 16, title, weight="bold"), *_legend(left, 34)]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_line(x(tick), top, x(tick), height - 24, PALE))
        parts.append(_text(x(tick), height - 8, f"{tick:.0%}", anchor="middle"))
    for place, each in enumerate(lines):
        y = top + step * (place + 0.5)
        parts.append(_text(left - 8, y + 4, each.label, anchor="end"))
        parts.append(_line(x(each.low), y, x(each.high), y, OURS, 4))
        parts.append(f'<circle cx="{x(each.score):.1f}" cy="{y}" r="4" fill="{OURS}"/>')
        if each.paper is not None:
            parts.append(_diamond(x(each.paper), y))
    return _svg(title, left + width + 30, height, parts)


def lines(
    title: str, series: dict[str, Sequence[tuple[float, float]]], x_label: str, y_label: str
) -> str:
    """Several lines over one threshold axis, with a logarithmic axis of executions."""
    left, width, top, tall = 80, 560, 40, 300
    values = [value for points in series.values() for _, value in points if value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    places = [place for points in series.values() for place, _ in points]
    first, last = min(places), max(places)

    def x(place: float) -> float:
        return left + width * (place - first) / (last - first or 1)

    def y(value: float) -> float:
        return top + tall * (1 - (math.log10(value) - low) / (high - low or 1))

    parts = [_text(0, 16, title, weight="bold")]
    for power in range(low, high + 1):
        parts.append(_line(left, y(10**power), left + width, y(10**power), PALE))
        parts.append(_text(left - 8, y(10**power) + 4, f"{10**power:,}", anchor="end"))
    for place in sorted(set(places)):
        parts.append(_text(x(place), top + tall + 18, f"{place:g}", anchor="middle"))
    parts.append(_text(left + width / 2, top + tall + 38, x_label, anchor="middle"))
    parts.append(_text(left, top - 8, y_label))
    for number, (name, points) in enumerate(series.items()):
        colour = (OURS, THEIRS, "#38761d", "#741b47", "#666", "#a64d79", "#134f5c", "#7f6000")[
            number % 8
        ]
        path = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in points if value > 0)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(left + width + 14, top + 16 * number + 12, f"— {name}", fill=colour))
    return _svg(title, left + width + 300, top + tall + 50, parts)


def _legend(x: float, y: float) -> list[str]:
    return [
        f'<circle cx="{x}" cy="{y - 4}" r="4" fill="{OURS}"/>',
        _text(x + 10, y, "measured here, with its interval"),
        _diamond(x + 230, y - 4),
        _text(x + 240, y, "in the paper"),
    ]


def _diamond(x: float, y: float) -> str:
    shape = f'd="M{x - 5:.1f} {y}l5 -5l5 5l-5 5z"'
    return f'<path {shape} fill="none" stroke="{THEIRS}" stroke-width="2"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = "#1a1a1a",
    weight: str = "normal",
) -> str:
    style = f'text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(text)}</text>'


def _svg(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    label = html.escape(title, quote=True)
    font = 'font-family="system-ui, sans-serif" font-size="13"'
    kind = f'xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}"'
    inside = "\n".join(parts)
    return f"<svg {kind} {size} {font}>\n{inside}\n</svg>"
