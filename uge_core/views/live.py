"""What the live slider draws while it is dragged: every measured lambda of one series, small enough to send at once."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from uge_core.runs.names import method_class
from uge_core.views.tradeoff import QUALITIES, TRADEOFF_METRICS, TradeoffView, lambda_view
from uge_core.views.words import known, records


def live_assets() -> dict[str, str]:
    """The slider's `html`, `css` and `js`, which hold no word of anybody's data."""
    folder = files("uge_core.views")
    return {kind: (folder / f"live.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")}


def live_data(view: TradeoffView, series: str, lam: float) -> dict[str, Any]:
    """The measured points of a series, for the slider, and which one it stands on.

    Args:
        view: the trade-off.
        series: one of `TradeoffView.series`.
        lam: where it stands; the nearest measured lambda is taken.
    """
    points: list[dict[str, Any]] = []
    for row in records(view.table):
        if row["series"] == series and known(row["lambda"]):
            at_lambda = lambda_view(view, series, float(row["lambda"]))
            ends = [row[f"{axis}_{end}"] for axis in ("value", "ndcg") for end in ("low", "high")]
            points.append(
                {
                    "lam": float(row["lambda"]),
                    "at": [float(row["value"]), float(row["ndcg"])],
                    "ends": [float(v) if known(v) else None for v in ends],
                    "figures": [list(figure) for figure in at_lambda.figures],
                    "sentence": at_lambda.sentence,
                }
            )
    points.sort(key=lambda p: p["lam"])
    others = [
        [float(row["value"]), float(row["ndcg"]), row["run"]] for row in records(view.table) if not known(row["lambda"])
    ]
    method = next((p.method for p in view.points if p.series == series), "none")
    return {
        "points": points,
        "others": others,
        "chosen": min(range(len(points)), key=lambda i: abs(points[i]["lam"] - lam), default=0),
        "series": series,
        "color": method_class(method).color,
        "across": f"{TRADEOFF_METRICS[view.metric]} of {view.attribute} (left is better)",
        "up": f"{QUALITIES[view.quality]} (up is better)",
    }
