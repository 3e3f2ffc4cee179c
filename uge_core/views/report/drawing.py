"""The report's pictures: inline SVG and coloured cells, whose numbers are text.

They need no script, print as they are on screen, and what they say is compared by `uge verify` like any other text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uge_core.views.figures.look import escape, mixed, readable_on
from uge_core.views.points import Reading

_WIDTH, _HEIGHT = 350, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 20, 40
_LETTER = 4.9  # a letter's width on average, of labels
_PALE, _DEEP = "#F4F7FA", "#0B4F82"


@dataclass(frozen=True)
class Mark:
    """One embedding in a chart.

    Attributes:
        letter: which it is called by in the chart and in the list below it.
        label: method and lambda, with the number of seeds.
        color: its method's.
        x: leakage.
        y: link quality.
        role: "A" or "B" of the two that are compared, else "".
        usable: it says something about links.
    """

    letter: str
    label: str
    color: str
    x: Reading
    y: Reading
    role: str = ""
    usable: bool = True


def tradeoff_drawing(marks: Sequence[Mark], *, across: str, up: str, coin: bool, leak: float, alt: str) -> str:
    """Leakage across, link quality up, each with its 95 % interval; letters stand for embeddings.

    Args:
        marks: at least one.
        across: the title of the x axis.
        up: that of the y axis.
        coin: whether x is an area under the ROC curve, where 0.5 is chance.
        leak: above this the lower end of a leak's interval lies; drawn beside the coin.
        alt: the chart in words.
    """
    xs = _Axis.over([v for m in marks for v in _ends(m.x)] + ([0.5, leak] if coin else []), _LEFT, _WIDTH - _RIGHT)
    floors = [v for m in marks for v in (m.y.random, m.y.degree) if v is not None]
    ys = _Axis.over([v for m in marks for v in _ends(m.y)] + floors, _HEIGHT - _BOTTOM, _TOP)
    out = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(alt)}">',
        *(_line(xs(t), _TOP, xs(t), _HEIGHT - _BOTTOM, "grid") for t in xs.ticks),
        *(_line(_LEFT, ys(t), _WIDTH - _RIGHT, ys(t), "grid") for t in ys.ticks),
    ]
    if coin:
        out.append(_line(xs(0.5), _TOP, xs(0.5), _HEIGHT - _BOTTOM, "floor"))
        out.append(_line(xs(leak), _TOP, xs(leak), _HEIGHT - _BOTTOM, "leak"))
    under = {name: value for name in _FLOORS if (value := _floor(marks, name)) is not None}
    for value in under.values():
        out.append(_line(_LEFT, ys(value), _WIDTH - _RIGHT, ys(value), "floor"))
    for m in marks:
        x, y = xs(m.x.value), ys(m.y.value)
        if m.x.low is not None and m.x.high is not None:
            out.append(_line(xs(m.x.low), y, xs(m.x.high), y, "ends", m.color))
        if m.y.low is not None and m.y.high is not None:
            out.append(_line(x, ys(m.y.low), x, ys(m.y.high), "ends", m.color))
    for m in marks:
        fill = m.color if m.usable else "#FFFFFF"
        ring = f' stroke="{"#1A1A1A" if m.role else m.color}" stroke-width="{2 if m.role else 1.5}"'
        out.append(f'<circle cx="{xs(m.x.value):.1f}" cy="{ys(m.y.value):.1f}" r="5" fill="{fill}"{ring}/>')
    # Text comes last and from left to right, as it is read and compared in this order.
    out += [_text(xs(t), _HEIGHT - _BOTTOM + 13, xs.say(t), "tick", "middle") for t in xs.ticks]
    out += [_text(_LEFT - 5, ys(t) + 3.5, ys.say(t), "tick", "end") for t in ys.ticks]
    out.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, across, "title", "middle"))
    if coin:
        out.append(_text(max(xs(0.5), _LEFT), _TOP - 5, "a coin", "tick", "middle"))
        said = f"leak above {leak:g}"
        fits = xs(leak) + _LETTER * len(said) < _WIDTH
        out.append(_text(xs(leak) - 4 if fits else _WIDTH - 2, _TOP - 5, said, "tick", "start" if fits else "end"))
    dots = [(xs(m.x.value), ys(m.y.value)) for m in marks]
    taken: list[tuple[float, float, float]] = []
    for name, value in sorted(under.items(), key=lambda u: -u[1]):
        taken.append(_on_line(ys(value), _LETTER * len(_FLOORS[name]), dots, taken))
        out.append(_text(taken[-1][0], taken[-1][2], _FLOORS[name], "tick", "start"))
    turned = f'transform="rotate(-90 11 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f})"'
    out.append(_text(11, (_TOP + _HEIGHT - _BOTTOM) / 2, up, "title", "middle", turned))
    out += [
        _text(x, y, m.letter, "letter", "middle")
        for m, (x, y) in zip(marks, _beside(dots, taken, [xs(0.5), xs(leak)] if coin else []), strict=True)
    ]
    return "".join([*out, "</svg>"])


_FLOORS = {"random": "a random order", "degree": "training degree alone"}


def _ends(reading: Reading) -> list[float]:
    return [v for v in (reading.value, reading.low, reading.high) if v is not None]


def _floor(marks: Sequence[Mark], name: str) -> float | None:
    """What chance or the degree gives: of one graph it is nearly the same of all."""
    found = [v for m in marks if (v := getattr(m.y, name)) is not None]
    return sum(found) / len(found) if found else None


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float
    step: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        low, high = min(values), max(values)
        room = 0.06 * ((high - low) or 0.1)
        low, high = low - room, high + room
        size = 10 ** math.floor(math.log10((high - low) / 4))
        step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k * 5 >= high - low)
        return cls(low, high, start, end, step)

    @property
    def ticks(self) -> list[float]:
        first = math.ceil(self.low / self.step - 1e-9)
        return [k * self.step for k in range(first, math.floor(self.high / self.step + 1e-9) + 1)]

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def say(self, value: float) -> str:
        return f"{value + 0.0:.{max(0, math.ceil(-math.log10(self.step) - 1e-9)) + (1 if _halves(self.step) else 0)}f}"


def _halves(step: float) -> bool:
    return math.isclose(step / 10 ** math.floor(math.log10(step)), 2.5)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, color: str = "") -> str:
    stroke = f' stroke="{color}"' if color else ""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{stroke}/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


_PLACES = ((9, -6), (9, 12), (-9, -6), (-9, 12), (0, -10), (0, 18), (20, 4), (-20, 4), (20, -14), (-20, -14))


def _on_line(
    y: float, width: float, dots: Sequence[tuple[float, float]], lines: Sequence[tuple[float, float, float]]
) -> tuple[float, float, float]:
    """Where a horizontal line's label begins and ends and its height: clear of dots and of other labels, right if it can."""
    starts = (_WIDTH - _RIGHT - width - 2, _LEFT + 4, (_LEFT + _WIDTH - _RIGHT - width) / 2)
    places = [(x, x + width, y + dy) for dy in (-3.5, 10) for x in starts if _TOP + 8 < y + dy < _HEIGHT - _BOTTOM - 1]
    clear = (
        (a, b, h)
        for a, b, h in places
        if not any(a - 7 < x < b + 7 and abs(h - 3 - v) < 10 for x, v in dots)
        and not any(a < d and c < b and abs(h - g) < 10 for c, d, g in lines)
    )
    return next(clear, (places or [(starts[0], starts[0] + width, y - 3.5)])[0])


def _beside(
    dots: Sequence[tuple[float, float]], lines: Sequence[tuple[float, float, float]], uprights: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Where each dot's letter stands, clear of dots, of letters before it, of upright lines and of labels of others."""
    taken: list[tuple[float, float]] = []
    for x, y in dots:
        places = [(x + dx, y + dy) for dx, dy in _PLACES]
        inside = [p for p in places if _LEFT < p[0] < _WIDTH - 4 and _TOP < p[1] < _HEIGHT - _BOTTOM]
        clear = (
            p
            for p in inside
            if all(abs(p[0] - a) > 11 or abs(p[1] - b) > 11 for a, b in taken)
            and all(abs(p[0] - a) > 9 or abs(p[1] - 4 - b) > 8 for a, b in dots)
            and all(abs(p[0] - v) > 5 for v in uprights)
            and not any(a - 5 < p[0] < b + 5 and abs(p[1] - h) < 10 for a, b, h in lines)
        )
        taken.append(next(clear, (inside or places)[0]))
        yield taken[-1]


@dataclass(frozen=True)
class Square:
    """A cell of a heat map.

    Attributes:
        text: its value, or why there is none.
        style: its colours; "" without a value.
    """

    text: str
    style: str


def square(value: float | None, scale: float, instead: str) -> Square:
    """A value's cell, the deeper in colour the nearer to `scale`; `instead` stands where there is none."""
    if value is None:
        return Square(instead, "")
    color = mixed(_PALE, _DEEP, min(1.0, max(0.0, value / scale)) if scale else 0.0)
    return Square(f"{value:.3f}", f"background: {color}; color: {readable_on(color)}")
