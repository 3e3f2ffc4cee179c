"""Where a run's data are from, as a report may say it: what their dataset.yaml says, never where files lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uge_core.datasets import locate
from uge_core.datasets.card import read_card
from uge_core.errors import UgeError, shell_word
from uge_core.runs.stored_run import StoredRun

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore

_PUBLIC = ("sample:", "pyg:")


def origin(run: StoredRun, store: RunStore) -> dict[str, str]:
    """`source` and `licence` of the run's data; "" where their dataset.yaml does not say, or is not at hand."""
    spec = (run.dataset.get("source") or {}).get("spec")
    told = {"source": "", "licence": ""}
    if not spec:
        return told
    try:
        _, found = locate(spec, store=store.root)
        # A sample's is beside its files, which its layout reads without it.
        beside = [path.parent / "dataset.yaml" for path in found.files.values()]
        card_path = next((p for p in (found.files.get("card"), *beside) if p is not None and p.is_file()), None)
        if card_path is not None:
            card = read_card(card_path)
            told |= {key: str(card.get(key) or "") for key in told}
    except (UgeError, OSError):
        return {"source": "", "licence": ""}
    if not told["source"] and str(spec).startswith("pyg:"):
        told["source"] = f"the dataset {str(spec).partition(':')[2]} of PyG's"
    return told


def public_name(run: StoredRun) -> str:
    """How everybody names the run's data in a command for a shell, "" where only this machine has them."""
    source = run.dataset.get("source") or {}
    spec = str(source.get("spec") or "")
    if not spec.startswith(_PUBLIC) or source.get("scenario"):
        return ""
    columns = source.get("attributes")
    attributes = f" --attributes {shell_word(','.join(columns))}" if columns else ""
    return f"{shell_word(spec)}{attributes}"
