"""Pictures inside a page: SVG that stretches with it, while its letters keep their size."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from .render import number, shown

Array = NDArray[np.float64]

_ROW = 22  # pixels
_NAMES = 42  # percent of the width, for names
_MOST_NAME = 24  # characters in it: as many as a bin of dates has
_TOP = 22  # pixels of the scale
_PROFILE = 190  # pixels of a picture of many cells
_MOST_STEPS = 600  # points of such a picture


class Row(NamedTuple):
    """One line of a picture: a heading, or an interval around an estimate."""

    name: str
    estimate: float | None = None
    low: float = math.nan
    high: float = math.nan


class Scale(NamedTuple):
    """A map from numbers to percent of the width, or of the height."""

    low: float
    high: float

    @classmethod
    def over(cls, *values: object) -> "Scale":
        """Return a scale over all finite values, and zero, with a little room."""
        every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
        every = np.append(every[np.isfinite(every)], 0.0)
        low, high = float(every.min()), float(every.max())
        room = 0.03 * (high - low or 1.0)
        return cls(low - room, high + room)

    def at(self, value: float) -> float:
        """Return percent from the low end."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)

    def ticks(self, most: int = 4) -> list[float]:
        """Return round numbers on the scale."""
        span = self.high - self.low
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(k * power for k in (1, 2, 5, 10, 20) if span / (k * power) <= most)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [k * step for k in range(first, last + 1)]


def interval_chart(rows: Sequence[Row], title: str, description: str) -> Markup:
    """Draw a line for each interval, a dot for each estimate, names above them."""
    scale = Scale.over(*([r.estimate, r.low, r.high] for r in rows if r.estimate is not None))
    names, marks = [], []
    for k, row in enumerate(rows):
        y = _TOP + _ROW * k + _ROW // 2
        names.append(_name(row.name, y, heading=row.estimate is None))
        if row.estimate is not None:
            ends = {"x1": _percent(scale, row.low), "x2": _percent(scale, row.high)}
            marks.append(tag("line", y1=y, y2=y, class_="i", **ends))
            marks.append(tag("circle", cx=_percent(scale, row.estimate), cy=y, r=3.5, class_="o"))
    return _lines(title, description, len(rows), scale, names, marks)


def comparison_chart(
    names: Sequence[str], ours: Array, theirs: Array, title: str, description: str
) -> Markup:
    """Draw two dots on each line: what is proposed, and what it is compared with."""
    scale = Scale.over(ours, theirs)
    labels, marks = [], []
    for k, (name, x, other) in enumerate(zip(names, ours.tolist(), theirs.tolist(), strict=True)):
        y = _TOP + _ROW * k + _ROW // 2
        labels.append(_name(name, y))
        ends = {"x1": _percent(scale, x), "x2": _percent(scale, other)}
        marks.append(tag("line", y1=y, y2=y, class_="g", **ends))
        square = {"x": _percent(scale, other), "y": y - 3.5, "width": 7, "height": 7}
        marks.append(tag("rect", class_="t", transform="translate(-3.5 0)", **square))
        marks.append(tag("circle", cx=_percent(scale, x), cy=y, r=4, class_="o"))
    return _lines(title, description, len(names), scale, labels, marks)


def _name(name: str, y: int, *, heading: bool = False) -> Markup:
    """Write the name of a line; a heading may be longer, since nothing is beside it."""
    most = 2 * _MOST_NAME if heading else _MOST_NAME
    x = 0 if heading else 8
    return tag("text", shown(name, most), x=x, y=y + 4, class_="h" if heading else None)


def _lines(
    title: str,
    description: str,
    count: int,
    scale: Scale,
    names: Sequence[Markup],
    marks: Sequence[Markup],
) -> Markup:
    """Draw names on the left, and marks over a scale on the right."""
    bottom = _TOP + _ROW * count
    plot = tag(
        "svg",
        *_vertical_scale(scale, bottom),
        *marks,
        x=f"{_NAMES}%",
        y=0,
        width=f"{100 - _NAMES}%",
        height=bottom,
    )
    return _drawing(title, description, bottom + 4, [plot, *names])


def profile_chart(
    estimate: Array, low: Array, high: Array, below: str, title: str, description: str
) -> Markup:
    """Draw many cells side by side as steps, in a band of their intervals.

    The numbers of the scale are placed where the steps are low.
    """
    groups = np.array_split(np.arange(estimate.size), min(estimate.size, _MOST_STEPS))
    middle = np.array([estimate[g].mean() for g in groups])
    least = np.array([low[g].min() for g in groups])
    most = np.array([high[g].max() for g in groups])
    scale = Scale.over(middle, least, most)
    x = np.repeat(np.linspace(0, 1000, len(groups) + 1), 2)[1:-1]
    falls = estimate[0] > estimate[-1]
    x_scale, anchor = ("100%", "end") if falls else ("0%", "start")

    def points(values: Array, x: Array = x) -> list[str]:
        y = 1000 - 10 * np.array([scale.at(v) for v in np.repeat(values, 2).tolist()])
        return [f"{a:g},{b:g}" for a, b in zip(np.round(x, 1), np.round(y, 1), strict=True)]

    band = points(least) + points(most)[::-1]
    inner = tag(
        "svg",
        tag("polygon", points=" ".join(band), class_="b"),
        tag(
            "polyline",
            points=" ".join(points(middle)),
            class_="l",
            vector_effect="non-scaling-stroke",
        ),
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
        x=0,
        y=0,
        width="100%",
        height=_PROFILE,
    )
    parts = []
    for tick in scale.ticks():
        y = round(_PROFILE * (1 - scale.at(tick) / 100), 1)
        line = {"x1": "0%", "x2": "100%", "y1": y, "y2": y}
        parts.append(tag("line", class_="z" if tick == 0 else "g", **line))
    parts.append(inner)
    for tick in scale.ticks():
        y = round(_PROFILE * (1 - scale.at(tick) / 100), 1)
        parts.append(tag("text", _tick(tick), x=x_scale, y=y - 3, class_="s", text_anchor=anchor))
    parts.append(tag("text", below, x="50%", y=_PROFILE + 16, class_="s", text_anchor="middle"))
    return _drawing(title, description, _PROFILE + 22, parts)


def _vertical_scale(scale: Scale, bottom: int) -> list[Markup]:
    """Draw lines at round numbers, which are written above them."""
    parts = []
    for tick in scale.ticks():
        x = _percent(scale, tick)
        kind = "z" if tick == 0 else "g"
        parts.append(tag("line", x1=x, x2=x, y1=16, y2=bottom, class_=kind))
        place = scale.at(tick)
        anchor = "start" if place < 12 else "end" if place > 88 else "middle"
        parts.append(tag("text", _tick(tick), x=x, y=11, class_="s", text_anchor=anchor))
    return parts


def _tick(value: float) -> str:
    """Return a round number, as short as possible."""
    digits = next((k for k in range(9) if abs(round(value, k) - value) < 1e-9), 9)
    return number(value, digits) if 1e-9 < abs(value) < 1e15 else f"{value:.6g}"


def _percent(scale: Scale, value: float) -> str:
    return f"{scale.at(value):g}%"


def _drawing(title: str, description: str, height: int, parts: Sequence[Markup]) -> Markup:
    """Return an image with a name and a description for people who use screen readers."""
    words = tag("title", title), tag("desc", description)
    return tag("svg", *words, *parts, role="img", height=height)


def tag(name: str, /, *inside: object, **attributes: object) -> Markup:
    """Return an element of a picture; None attributes are left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in {"line", "circle", "rect", "polygon", "polyline"}:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{''.join(map(escape, inside))}</{name}>")
