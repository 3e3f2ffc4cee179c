"""`uge train` and `uge sweep`: train runs and audit them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from uge_core.cli.arguments import (
    DONE,
    Parser,
    Parsers,
    add_command,
    data_arguments,
    device_argument,
    epochs_argument,
    evidence_code,
    key_values,
    nonempty,
    number,
    number_list,
    parts,
    place_arguments,
    set_argument,
    text_list,
    whole_number,
    whole_number_list,
)
from uge_core.cli.printing import ProgressLine, audit_text, print_json
from uge_core.cli.torchrun import with_ranks
from uge_core.errors import ConfigError
from uge_core.machine import keep_freed_memory
from uge_core.ranks import Ranks
from uge_core.registry import names
from uge_core.runs.store import RunStore

if TYPE_CHECKING:
    from uge_core.graph.graph import AttributedGraph


def add(parsers: Parsers) -> None:
    """Declares `train` and `sweep`."""
    one = add_command(parsers, "train", train, help="train one run and audit it")
    _training_arguments(one)
    one.add_argument("--sensitive", type=nonempty, metavar="A,B", help="attributes to debias, jointly")
    one.add_argument("--backbone", default="node2vec", help=f"one of {', '.join(names('backbones'))}")
    one.add_argument("--method", default="none", help=f"one of {', '.join(names('debias.methods'))}")
    one.add_argument("--lam", type=number, metavar="L", help="weight of the penalty, 0 or more")
    one.add_argument("--seed", type=whole_number, default=0, help="initialisation and the method's draws (default 0)")
    one.add_argument("--json", action="store_true", help="print the audit as one JSON object")

    one = add_command(parsers, "sweep", sweep_grid, help="train and audit a grid of runs")
    _training_arguments(one)
    one.add_argument(
        "--sensitive", type=nonempty, metavar="A,B+C", help="attributes, each in turn; A+B debiases A and B jointly"
    )
    one.add_argument(
        "--backbone", type=text_list, default="node2vec", metavar="B,..", help=f"of {', '.join(names('backbones'))}"
    )
    one.add_argument(
        "--methods", type=text_list, default="none", metavar="M,..", help=f"of {', '.join(names('debias.methods'))}"
    )
    one.add_argument("--lams", type=number_list, default=[], metavar="L,..", help="for the methods that have a penalty")
    one.add_argument(
        "--warm",
        action="store_true",
        help="train the middle lambda alone and the others from its end, in a fifth of the epochs "
        "(--set warm_epochs=N): a quick look at a path, not the runs that training anew would give",
    )
    one.add_argument("--seeds", type=whole_number_list, default=[0], metavar="S,..", help="default 0")
    one.add_argument("--dry-run", action="store_true", help="say what would be trained, and stop")
    one.add_argument("--json", action="store_true", help="print a list of audits")


def _training_arguments(one: Parser) -> None:
    data_arguments(one)
    epochs_argument(one)
    split = one.add_mutually_exclusive_group()
    split.add_argument(
        "--split-seed", type=whole_number, default=0, help="split, negatives and probe split (default 0)"
    )
    split.add_argument(
        "--split-seeds", type=whole_number_list, metavar="S,..", help="repeat everything on several splits"
    )
    one.add_argument("--unknown", help="missing values: level, exclude or impute (default: the layout's)")
    one.add_argument("--hidden", default="impute", help="values hidden from the twin: impute (default) or exclude")
    one.add_argument("--exposure", default="both", help="both (default) or seen: no twin")
    one.add_argument("--validation", type=number, help="share of training edges that picks the best epoch (default 0)")
    one.add_argument("--negatives", help="shared (default) or listed, the paper's recipe")
    device_argument(one)
    place_arguments(one)
    one.add_argument("--deterministic", action="store_true", help="the same bits each time; the CPU does so anyway")
    set_argument(one)
    one.add_argument("--solo", action="store_true", help="train each run in a pass of its own")
    one.add_argument("--force", action="store_true", help="train although a finished run is there")


# What has a flag of its own, under each name it may be asked for; the first that the command has is named.
_FLAGS = {
    "seed": ("seed", "seeds"),
    "lam": ("lam", "lams"),
    "lambda": ("lam", "lams"),
    "method": ("method", "methods"),
    "split_seed": ("split_seed",),
} | {
    name: (name,)
    for name in ("sensitive", "backbone", "unknown", "hidden", "exposure", "attributes", "device", "on", "cpus")
}


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The training settings that were given."""
    options = key_values(args.set)
    for key in options:
        for flag in _FLAGS.get(key, ()):
            if hasattr(args, flag):
                raise ConfigError(f"--set {key} is not allowed; use --{flag.replace('_', '-')}")
    given = {"epochs": args.epochs, "validation": args.validation, "negatives": args.negatives}
    settings: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    for key in settings:
        if key in options:
            raise ConfigError(f"--set {key} and --{key} are both given; keep one")
    return settings | {"unknown": args.unknown, "hidden": args.hidden, "exposure": args.exposure, "options": options}


def train(args: argparse.Namespace) -> int:
    """Trains one run on each split, and prints the audits."""
    split_seeds = args.split_seeds or [args.split_seed]
    if args.json and len(split_seeds) > 1:
        raise ConfigError("train --json prints one audit; for several splits use uge sweep --split-seeds")
    return with_ranks(args, lambda graph, source, ranks: _train(args, split_seeds, graph, source, ranks))


def _train(
    args: argparse.Namespace, split_seeds: list[int], graph: AttributedGraph, source: dict[str, Any], ranks: Ranks
) -> int:
    from uge_core.runs.sweep import sweep

    with ProgressLine(sys.stderr) as on_progress:
        keep_freed_memory()
        done = sweep(
            graph,
            sensitive=_joint(args.sensitive),
            methods=[args.method],
            lams=[] if args.lam is None else [args.lam],
            seeds=[args.seed],
            split_seeds=split_seeds,
            backbones=[args.backbone],
            store=RunStore(args.store),
            force=args.force,
            device=args.device,
            deterministic=args.deterministic,
            solo=args.solo,
            on=args.on,
            cpus=args.cpus,
            on_progress=on_progress,
            source=source,
            ranks=ranks,
            **_settings(args),
        )
    if args.json:
        print_json(done[0].audit)
    else:
        for run in done:
            print(audit_text(run.rows))
            print(run.id)
    return evidence_code(row for run in done for row in run.rows)


def _joint(text: str | None) -> str:
    return "+".join(parts((text or "").replace("+", ",")))


def sweep_grid(args: argparse.Namespace) -> int:
    """Trains a grid of runs, or says with --dry-run what it would train."""
    return with_ranks(args, lambda graph, source, ranks: _sweep_grid(args, graph, source, ranks))


def _sweep_grid(args: argparse.Namespace, graph: AttributedGraph, source: dict[str, Any], ranks: Ranks) -> int:
    from uge_core.runs.names import config_words
    from uge_core.runs.plan import plan
    from uge_core.runs.sweep import sweep, usable

    grid = {
        "sensitive": args.sensitive or "",
        "methods": args.methods,
        "lams": args.lams,
        "warm": args.warm,
        "seeds": args.seeds,
        "split_seeds": args.split_seeds or [args.split_seed],
        "backbones": args.backbone,
        **_settings(args),
    }
    store = RunStore(args.store)
    if args.dry_run:
        planned = plan(graph, **grid)
        there = {p.run_id: store.find(p.run_id) for p in planned}
        rows: list[dict[str, Any]] = []
        for p in planned:
            run = there[p.run_id]
            stored = run is not None and usable(run) and not args.force
            rows.append({"run_id": p.run_id, "config": p.config.to_json(), "plan": "stored" if stored else "train"})
        if args.json:
            print_json(rows)
        else:
            for row in rows:
                print(row["run_id"], row["plan"], config_words(row["config"]), sep="  ")
        return DONE
    with ProgressLine(sys.stderr) as on_progress:
        keep_freed_memory()
        done = sweep(
            graph,
            store=store,
            force=args.force,
            device=args.device,
            deterministic=args.deterministic,
            solo=args.solo,
            on=args.on,
            cpus=args.cpus,
            on_progress=on_progress,
            source=source,
            ranks=ranks,
            **grid,
        )
    if args.json:
        print_json([run.audit for run in done])
    else:
        for run in done:
            print(run.id)
    return evidence_code(row for run in done for row in run.rows)
