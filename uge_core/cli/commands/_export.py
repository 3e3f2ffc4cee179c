"""`uge runs export`: writes a run's embeddings or edge weights."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from uge_core.cli.arguments import DONE, Parsers, add_command, moved_data_argument, nonempty, text_list
from uge_core.cli.loading import load_again
from uge_core.cli.printing import remark
from uge_core.errors import ConfigError, StoreError
from uge_core.files import private, quoted
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `runs export`."""
    one = add_command(parsers, "export", run, help="write a run's embeddings or edge weights")
    one.add_argument("run_id", metavar="RUN_ID")
    one.add_argument("--what", type=text_list, default="embeddings", metavar="W,..", help="of embeddings, weights")
    one.add_argument("--out", type=nonempty, required=True, metavar="DIR", help="the folder to write to")
    moved_data_argument(one)


def run(args: argparse.Namespace) -> int:
    """Writes the files, and prints where they are."""
    from uge_core.runs.audits import score_of
    from uge_core.runs.export import training_weights

    for name in args.what:
        if name not in ("embeddings", "weights"):
            raise ConfigError(f"--what {name!r} is not allowed; allowed: embeddings, weights")
    run = RunStore(args.store).load(args.run_id)
    if run.finished is None:
        raise StoreError(f"run {run.id} is {run.status} and has nothing to export; train it first")
    graph = load_again(run, args.data, args.store, ids=True)
    ids = graph.ids(slice(None))
    cells = [quoted(name) for name in ids]
    # All that can be refused is, before anything is written.
    embedding = run.embedding
    weights = training_weights(run, graph) if "weights" in args.what else None
    out = Path(args.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if "embeddings" in args.what:
            for path in _export_embeddings(embedding, ids, cells, out):
                print(path)
            if score_of(run) != "dot":
                with open(out / "score.json", "w", encoding="utf-8", opener=private) as file:
                    json.dump({"score": score_of(run)}, file)
                print(out / "score.json")
                remark(f"pairs are not scored by the dot product: audit this file with --score {score_of(run)}")
        if weights:
            edges, numbers = weights
            columns = zip(*edges.tolist(), *(v.tolist() for v in numbers.values()), strict=True)
            rows = ([cells[u], cells[v], *map(repr, own)] for u, v, *own in columns)
            print(_write_csv(out / "weights.csv", ["source", "target", *numbers], rows))
    except OSError as error:
        if error.filename is None and not isinstance(error, BrokenPipeError):
            error.filename = str(out)
        raise
    altered = sum(cell != name for cell, name in zip(cells, ids, strict=True))
    if altered:
        where = "; ids.json has them as they are" if "embeddings" in args.what else ""
        remark(
            f"{altered:,} ids would start a formula in a spreadsheet and got a leading quote in the CSV files{where}"
        )
    return DONE


def _export_embeddings(embedding: Any, ids: list[str], cells: list[str], out: Path) -> Iterable[Path]:
    """`embeddings.npy` and `ids.json` in the node table's order, and `embeddings.csv`, both in one."""
    import numpy as np

    with open(out / "embeddings.npy", "wb", opener=private) as file:
        np.save(file, np.asarray(embedding))
    yield out / "embeddings.npy"
    with open(out / "ids.json", "w", encoding="utf-8", opener=private) as text:
        json.dump(ids, text)
    yield out / "ids.json"
    rows = ([cell, *map(repr, row.tolist())] for cell, row in zip(cells, embedding, strict=True))
    yield _write_csv(out / "embeddings.csv", ["id", *(f"z{i}" for i in range(embedding.shape[1]))], rows)


def _write_csv(path: Path, header: list[str], rows: Iterable[list[str]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8", errors="surrogateescape", opener=private) as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path
