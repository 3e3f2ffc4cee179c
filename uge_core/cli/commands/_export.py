"""`uge runs export`: writes a run's embeddings or edge weights."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from uge_core.cli.arguments import DONE, Parsers, add_command, moved_data_argument, nonempty, text_list
from uge_core.cli.loading import load_again
from uge_core.cli.printing import remark
from uge_core.errors import ConfigError, StoreError
from uge_core.files import quoted, write_atomically
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun

WARNING = (
    "Sensitive personal data: the numbers of a person's edges tell the person's group. Keep this file as you keep the "
    "attribute itself, and pass it on to nobody who may not have that."
)


def add(parsers: Parsers) -> None:
    """Declares `runs export`."""
    one = add_command(
        parsers,
        "export",
        run,
        help="write a run's embeddings, model card or edge weights",
        description="Writes files that their user alone may read. Edge weights are sensitive: those of a person's edges tell "
        "the person's group, so they are written only with --sensitive-output.",
    )
    one.add_argument("run_id", metavar="RUN_ID")
    one.add_argument(
        "--what", type=text_list, default="embeddings", metavar="W,..", help="of embeddings, card, weights"
    )
    one.add_argument(
        "--sensitive-output", action="store_true", help="write what tells each person's group too; weights need it"
    )
    one.add_argument("--out", type=nonempty, required=True, metavar="DIR", help="the folder to write to")
    one.add_argument("--purpose", default="", help="of card: what the embedding is for")
    moved_data_argument(one)


def run(args: argparse.Namespace) -> int:
    """Writes the files, and prints where they are."""
    from uge_core.runs.audits import score_of
    from uge_core.runs.export import training_weights

    for name in args.what:
        if name not in ("embeddings", "card", "weights"):
            raise ConfigError(f"--what {name!r} is not allowed; allowed: embeddings, card, weights")
    if "weights" in args.what and not args.sensitive_output:
        raise ConfigError(
            "--what weights writes sensitive personal data: the weights of a person's edges tell the person's group; add "
            "--sensitive-output where you may have that file, or leave weights out"
        )
    run = RunStore(args.store).load(args.run_id)
    if run.finished is None:
        raise StoreError(f"run {run.id} is {run.status} and has nothing to export; train it first")
    graph = load_again(run, args.data, args.store, ids=True)
    ids = graph.ids(slice(None))
    cells = [quoted(name) for name in ids]
    # All that can be refused is, before anything is written.
    embedding = run.embedding
    weights = training_weights(run, graph) if "weights" in args.what else None
    card = _card(run, RunStore(args.store), args.purpose) if "card" in args.what else None
    out = Path(args.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if "embeddings" in args.what:
            for path in _export_embeddings(embedding, ids, cells, out):
                print(path)
            if score_of(run) != "dot":
                print(
                    _write(out / "score.json", lambda file: file.write(json.dumps({"score": score_of(run)}).encode()))
                )
                remark(f"pairs are not scored by the dot product: audit this file with --score {score_of(run)}")
        if card is not None:
            print(_write(out / "model-card.md", lambda file: file.write(card)))
        if weights:
            edges, numbers = weights
            columns = zip(*edges.tolist(), *(v.tolist() for v in numbers.values()), strict=True)
            rows = ([cells[u], cells[v], *map(repr, own)] for u, v, *own in columns)
            print(_write_csv(out / "weights.csv", ["source", "target", *numbers], rows, first=f"# {WARNING}"))
    except OSError as error:
        if error.filename is None and not isinstance(error, BrokenPipeError):
            error.filename = str(out)
        raise
    if weights:
        remark(f"{out / 'weights.csv'}: {WARNING}")
    altered = sum(cell != name for cell, name in zip(cells, ids, strict=True))
    if altered:
        where = "; ids.json has them as they are" if "embeddings" in args.what else ""
        remark(
            f"{altered:,} ids would start a formula in a spreadsheet and got a leading quote in the CSV files{where}"
        )
    return DONE


def _card(run: StoredRun, store: RunStore, purpose: str) -> bytes:
    """The run's model card, with its other seeds and the untreated embedding beside it."""
    from uge_core.views.report import Sheet, contents
    from uge_core.views.report.choices import report_choices

    choices = report_choices(store, [run.id])
    mine = next((key for key, ids in choices.runs.items() if run.id in ids), None)
    plain = [key for key, ids in choices.runs.items() if store.load(ids[0]).config["method"] == "none"]
    ids = [i for key in dict.fromkeys([*plain[:1], mine]) if key for i in choices.runs[key]]
    wanted: list[StoredRun | str] = [*dict.fromkeys([*ids, run.id])]
    return contents(wanted, sheet=Sheet(purpose=purpose), store=store, after=run.id)["card"]()


def _export_embeddings(embedding: Any, ids: list[str], cells: list[str], out: Path) -> Iterable[Path]:
    """`embeddings.npy` and `ids.json` in the node table's order, and `embeddings.csv`, both in one."""
    import numpy as np

    yield _write(out / "embeddings.npy", lambda file: np.save(file, np.asarray(embedding)))
    yield _write(out / "ids.json", lambda file: file.write(json.dumps(ids).encode()))
    rows = ([cell, *map(repr, row.tolist())] for cell, row in zip(cells, embedding, strict=True))
    yield _write_csv(out / "embeddings.csv", ["id", *(f"z{i}" for i in range(embedding.shape[1]))], rows)


def _write_csv(path: Path, header: list[str], rows: Iterable[list[str]], *, first: str = "") -> Path:
    def write(file: IO[bytes]) -> None:
        text = io.TextIOWrapper(file, newline="", encoding="utf-8", errors="surrogateescape")
        if first:
            text.write(f"{first}\r\n")
        writer = csv.writer(text)
        writer.writerow(header)
        writer.writerows(rows)
        text.flush()
        text.detach()

    return _write(path, write)


def _write(path: Path, write: Callable[[IO[bytes]], Any]) -> Path:
    write_atomically(path, write)
    return path
