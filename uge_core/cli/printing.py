"""What commands print: results on stdout, remarks and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from uge_core.audit.base import RowRecord
from uge_core.progress import Progress
from uge_core.visible import visible


def complain(text: str, debug: bool, code: int) -> int:
    """Says an error in one line, with the traceback before it where `debug` is set, and gives `code` back."""
    if debug:
        traceback.print_exc()
    remark(text)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        drop_output()
    return code


def remark(text: str) -> None:
    """One line on stderr; a stderr that takes nothing stops no work."""
    with suppress(OSError, ValueError):
        print("uge: " + visible(" ".join(text.split())), file=sys.stderr, flush=True)


def drop_output() -> None:
    """What stdout still holds goes nowhere, or Python would try again at exit and end with a code of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def visible_terminal() -> Iterator[None]:
    """Whatever is printed to a terminal meanwhile turns no text around; what goes into files and pipes stays as it is."""
    if not sys.stdout.isatty():
        yield
        return
    with redirect_stdout(cast("TextIO", _Visible(sys.stdout))):
        yield


class _Visible:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_json(record: Any) -> None:
    """A record as JSON on stdout."""
    # What another encoding lacks is written as JSON's own escapes.
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    print(visible(json.dumps(record, indent=2, ensure_ascii=not utf8)))


def audit_text(records: Iterable[RowRecord]) -> str:
    """The audit as a table: each number with its interval, floors and n."""
    from uge_core.views.rows import METRIC_LABELS

    rows = []
    for r in records:
        interval = "" if r["ci_low"] is None else f"[{r['ci_low']:.3f}, {r['ci_high']:.3f}]"
        floors = {"random": r["floor_random"], "majority": r["floor_majority"], "degree": r.get("floor_degree")}
        value = "not enough evidence" if r["value"] is None else f"{r['value']:.4f}"
        if r["value"] is not None and r["evidence"] != "ok":
            value += " (not enough evidence)"
        better = f"{r['direction']} is better" if r["direction"] else ""
        rows.append(
            [
                r["attribute"] or "",
                METRIC_LABELS.get(r["metric"], r["metric"]),
                r["attacker"] or "",
                r["variant"] or "",
                r["exposure"] or "",
                value,
                interval,
                ", ".join(f"{word} {floor:.3f}" for word, floor in floors.items() if floor is not None),
                "" if r["n"] is None else f"{r['n']:,}",
                better,
            ]
        )
    head = ["attribute", "metric", "attacker", "variant", "exposure", "value", "95 % interval", "floors", "n", ""]
    return text_table(head, rows)


def comparison_text(records: Iterable[dict[str, Any]]) -> str:
    """A comparison as a table: both values, their difference with its interval, and its p-values."""
    from uge_core.views.rows import METRIC_LABELS

    def number(value: float | None, digits: int = 4) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    rows = []
    for r in records:
        value = "not enough evidence" if r["value"] is None else f"{r['value']:+.4f}"
        interval = "" if r["ci_low"] is None else f"[{r['ci_low']:+.3f}, {r['ci_high']:+.3f}]"
        rows.append(
            [
                r["attribute"] or "",
                METRIC_LABELS.get(r["metric"], r["metric"]),
                r["attacker"] or "",
                r["variant"] or "",
                r["exposure"] or "",
                number(r["a"]),
                number(r["b"]),
                value,
                interval,
                number(r["p_value"], 3),
                number(r["p_holm"], 3),
                f"{r['n']:,}",
                f"{r['direction']} is better",
            ]
        )
    head = [
        "attribute",
        "metric",
        "attacker",
        "variant",
        "exposure",
        "A",
        "B",
        "A - B",
        "95 % interval",
        "p",
        "p Holm",
        "n",
        "",
    ]
    return text_table(head, rows)


def text_table(head: list[str], rows: list[list[str]]) -> str:
    """Rows in columns of one width; a column that is empty in every row is left out."""
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    lines = [[visible(line[i]) for i in kept] for line in [head, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(kept))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


class ProgressLine:
    """Progress on a stream: one line that moves on a terminal, a line every tenth elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._moving = stream, stream.isatty()
        self._last: tuple[str, str, int] | None = None
        self._drawn = 0.0

    def __enter__(self) -> Callable[[Progress], None]:
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._moving and self._last:
            self._print("\r\x1b[K", "")

    def _print(self, text: str, end: str) -> None:
        # A stream that takes nothing stops no training.
        with suppress(OSError, ValueError):
            print(visible(text), end=end, file=self._stream, flush=True)

    def _show(self, step: Progress) -> None:
        if step.stage == "note":
            self._print(("\r\x1b[K" if self._moving else "") + f"note: {step.text}", "\n")
            return
        count = f" {step.done}/{step.total}" if step.total > 1 else ""
        if step.stage == "fetching":
            count = f" {step.done / 1e6:.1f} of {step.total / 1e6:.1f} MB ({step.done / step.total:.0%})"
        left = "" if step.seconds_left is None else f", {_duration(step.seconds_left)} left"
        line = f"{step.text}{count}{left}"
        if self._moving:
            now = time.monotonic()
            if now - self._drawn > 0.1 or step.done == step.total:
                self._drawn = now
                self._print(f"\r\x1b[K{line}", "")
            self._last = (step.stage, "", 0)
            return
        mark = (step.stage, step.text.partition(", loss")[0], 10 * step.done // max(step.total, 1))
        if mark != self._last:
            self._last = mark
            self._print(line, "\n")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
