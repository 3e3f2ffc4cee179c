"""`uge data`: looks at a graph, proposes a dataset.yaml, and makes samples."""

from __future__ import annotations

import argparse

from uge_core.cli.arguments import (
    CHECK_FAILED,
    DONE,
    Parsers,
    add_command,
    add_group,
    data_arguments,
    nonempty,
    whole_number,
)
from uge_core.cli.loading import load_graph
from uge_core.cli.printing import complain, print_json, remark
from uge_core.errors import DatasetMissing, GraphError, shell_word
from uge_core.runs.disclosure import EXACT
from uge_core.runs.store import RunStore


def add(parsers: Parsers) -> None:
    """Declares `data inspect`, `data describe` and `data make-sample`."""
    data = add_group(parsers, "data", help="look at a graph")
    one = add_command(data, "inspect", inspect_data, help="roles of columns, counts and messages")
    data_arguments(one)
    one.add_argument(
        "--json", action="store_true", help="print one JSON object, without numbers that could point at people"
    )
    one.add_argument("--exact", action="store_true", help="all numbers, of small groups too; not to be passed on")
    one = add_command(
        data,
        "describe",
        describe_folder,
        store=False,
        help="propose a dataset.yaml, with the evidence for each line",
        description="Says what the tables of a folder probably are: the dataset.yaml that would read them, with the "
        "evidence for each line as comments, and doubts. Where two readings fit about as well it is an error that "
        "names both and the key that decides.",
    )
    one.add_argument("folder", type=nonempty, metavar="FOLDER", help="the folder with the tables")
    one.add_argument("--edges", default="", metavar="FILE", help="the table with one row per edge (default: by name)")
    one.add_argument("--nodes", default="", metavar="FILE", help="the table with one row per node (default: by name)")
    one.add_argument("--write", action="store_true", help="write it as dataset.yaml into FOLDER, if there is none")
    one = add_command(
        data,
        "make-sample",
        make_sample_graph,
        store=False,
        help="write a graph whose true R and bias-free graph are known",
        description="Writes a planted graph as CSV, its card and its truth. The same arguments write the same bytes.",
    )
    one.add_argument("name", metavar="NAME", help="town (people) or titles (people and titles)")
    one.add_argument("out", type=nonempty, metavar="OUT", help="a new or empty folder")
    one.add_argument("--seed", type=whole_number, required=True, help="keys all draws")
    one.add_argument("--nodes", type=whole_number, metavar="N", help="people (default: town 2000, titles 600)")
    one.add_argument("--items", type=whole_number, metavar="M", help="titles (default 400)")
    one.add_argument("--edges", type=whole_number, metavar="E", help="expected edges (default: ten a person in town)")
    one.add_argument("--structure", help="chung-lu (default) or kronecker")


def inspect_data(args: argparse.Namespace) -> int:
    """Prints what a graph is and what is wrong with it."""
    from uge_core.datasets import describe, inspect
    from uge_core.views.data import told_inspection

    try:
        graph, _ = load_graph(args.data, args.attributes, args.store, keep=False)
    except GraphError as error:
        if isinstance(error, DatasetMissing) or not _content_is_at_fault(args.data, args.attributes, args.store):
            raise
        if args.json:
            fault = {"level": "blocking", "code": "unusable", "text": str(error)}
            print_json({"name": args.data, "messages": [fault]})
        return complain(str(error), args.debug, CHECK_FAILED)
    inspection = inspect(graph)
    told = inspection if args.exact else told_inspection(graph, inspection, RunStore(args.store))
    if args.json:
        print_json(told | {"disclosure": EXACT} if args.exact else told)
    else:
        print("\n".join((*((EXACT,) if args.exact else ()), describe(graph, told))))
    return CHECK_FAILED if any(m["level"] == "blocking" for m in inspection["messages"]) else DONE


def describe_folder(args: argparse.Namespace) -> int:
    """Prints the dataset.yaml that a folder's tables probably need, and writes it where that is asked."""
    from uge_core.datasets.proposal import propose

    proposal = propose(args.folder, args.edges, args.nodes)
    print(proposal.text)
    if args.write:
        remark(f"wrote {proposal.write()}; look at the graph with: uge data inspect {shell_word(args.folder)}")
    return DONE


def make_sample_graph(args: argparse.Namespace) -> int:
    """Writes a planted graph, and prints its files and summary."""
    from uge_core.datasets.planted.samples import make_sample

    written = make_sample(
        args.name,
        args.out,
        seed=args.seed,
        nodes=args.nodes,
        items=args.items,
        edges=args.edges,
        structure=args.structure,
    )
    for line in (*map(str, written.paths), *written.summary):
        print(line)
    return DONE


def _content_is_at_fault(spec: str, columns: list[str] | None, store: str | None) -> bool:
    """Whether data that cannot be loaded hold a fault; else what was asked of them does not exist."""
    from uge_core import datasets

    try:
        datasets.locate(spec, store=store)
    except GraphError:
        return False
    if columns is None:
        return True
    try:
        datasets.load(spec, store=store, may_fetch=False)
    except GraphError:
        return True
    return False
