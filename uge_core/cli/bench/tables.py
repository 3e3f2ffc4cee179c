"""The bench's record as tables of text."""

from __future__ import annotations

from typing import Any

RIVALS = ("literal", "one-negative", "shared-block")


def per_epoch(seconds: float) -> str:
    """A time per epoch in the unit that suits it."""
    return f"{taken(seconds)} an epoch"


def taken(seconds: float) -> str:
    """A time in the unit that suits it."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def heading(record: dict[str, Any]) -> list[str]:
    """What the figures were taken on, and how to read them."""
    machine = record["machine"]
    load = "unknown" if machine["load_average"] is None else f"{machine['load_average']:.1f}"
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if version)
    return [
        f"{machine['device']}, {machine['threads']} cores, load average {load}; Python {machine['python']}, {packages}",
        *(["quick: small and inexact, no figures to quote"] if record["quick"] else []),
        *(f"warning: {text}" for text in record["warnings"]),
        "Quote ratios: they are of one run on one machine. Times are of this machine alone.",
    ]


def sections(record: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """The record as tables: title, head and rows of each."""
    out = []
    if record["epochs"]:
        head = [
            "data",
            "backbone",
            "",
            "faster than literal",
            "than one negative",
            "than shared block",
            "cost / none",
            "an epoch",
            "until first",
            "memory before",
            "peak",
            "",
        ]
        rows = []
        for r in record["epochs"]:
            faster = [_times((r["times_faster_than"] or {}).get(rival)) for rival in RIVALS]
            name = r["method"] if r["contestant"] == "ours" else f"rival: {r['contestant']}"
            cost = f"{r['times_none']:.2f}" if r["contestant"] == "ours" and r["times_none"] else ""
            rows.append([r["data"], r["backbone"], name, *faster, cost, *_figures(r)])
        out.append(("An epoch: our engine against the same training in plain torch and torch-geometric", head, rows))
    if record["lambdas"]:
        head = [
            "data",
            "backbone",
            "members",
            "cost / fastest alone",
            "an epoch",
            "until first",
            "memory before",
            "peak",
            "",
        ]
        rows = [
            [r["data"], r["backbone"], f"{r['members']} x {r['method']}", _times(r["times_solo"]), *_figures(r)]
            for r in record["lambdas"]
        ]
        out.append(("A path of lambdas in one pass", head, rows))
    if record["scaling"]:
        head = ["", "nodes", "edges", "seconds", "until first", "memory before", "peak", ""]
        rows = [
            [_step(r), f"{p['nodes']:,}", f"{p['edges']:,}", *_figures(p)]
            for r in record["scaling"]
            for p in r["points"]
        ]
        fits = [f"{_step(r)} N^{r['exponent']:.2f}" for r in record["scaling"] if r["exponent"] is not None]
        out.append((f"By number of nodes N, training an epoch of node2vec: {', '.join(fits)}", head, rows))
    return out


def _step(row: dict[str, Any]) -> str:
    return row["step"] if row["method"] is None else f"{row['step']} {row['method']}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3g}x" if ratio < 100 else f"{ratio:.0f}x"


def _figures(row: dict[str, Any]) -> list[str]:
    if row["refused"]:
        return ["", "", "", "", row["refused"]]
    pieces = f"in {row['pieces']} pieces, to fit the memory" if row.get("pieces", 1) > 1 else ""
    memory = ["" if row[key] is None else f"{row[key]:.0f} MB" for key in ("start_mb", "peak_mb")]
    first = f"{row['first_seconds']:.1f} s" if "first_seconds" in row else ""
    return [taken(row["seconds"]), first, *memory, pieces]
