"""The command line: the same steps as the Python surface.

Results go to stdout, progress, remarks and errors to stderr. Exit codes: 0 done, 1 what the data hold
blocks their use (`data inspect`), 2 any other error, 3 not enough evidence, 130 interrupted. An error
is one line; `--debug` adds the traceback.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from uge_core.audit.record import about, covers, only, seal
from uge_core.errors import ConfigError, DatasetMissing, GraphError, StoreError, UgeError
from uge_core.files import quoted
from uge_core.machine import keep_freed_memory
from uge_core.registry import find, names
from uge_core.runs.audits import DEFAULT_ATTACKERS, audit_record
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore, default_root
from uge_core.runs.stored_run import StoredRun

if TYPE_CHECKING:
    from uge_core.graph.graph import AttributedGraph
    from uge_core.plugin import Info
    from uge_core.progress import Progress

DONE, CHECK_FAILED, USER_ERROR, NOT_ENOUGH_EVIDENCE, INTERRUPTED = 0, 1, 2, 3, 130


class _Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, without the usage text; options are written out in full."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"allow_abbrev": False}))

    def error(self, message: str) -> NoReturn:
        text = " ".join(f"{self.prog}: {message}; {self.prog} --help lists what is allowed".split())
        self.exit(USER_ERROR, text + "\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse's own forgets that the output could not be written.
        if message:
            (file or sys.stderr).write(message)


def run(arguments: Sequence[str]) -> int:
    """Runs one command.

    Args:
        arguments: as typed, without the program's name.

    Returns:
        The exit code.
    """
    debug = "--debug" in arguments
    try:
        try:
            args = parser().parse_args(arguments)
            code: int = args.command(args)
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _complain("interrupted", debug, INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (uge runs list | head); that is no fault.
        _drop_output()
        return DONE
    except UgeError as error:
        return _complain(str(error), debug, USER_ERROR)
    except MemoryError:
        return _complain("not enough memory; try fewer runs at once (--solo) or a smaller dim", debug, USER_ERROR)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "the output cannot be written: "
        return _complain(f"{where}{error.strerror or error}; name another place", debug, USER_ERROR)
    except UnicodeError as error:
        text = f"the output cannot be written: {error}; set PYTHONIOENCODING=utf-8"
        return _complain(text, debug, USER_ERROR)
    except Exception as error:
        text = f"internal error, {type(error).__name__}: {error}; run it again with --debug for the traceback"
        return _complain(text, debug, USER_ERROR)


def _complain(text: str, debug: bool, code: int) -> int:
    if debug:
        traceback.print_exc()
    _remark(text)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _drop_output()
    return code


def _remark(text: str) -> None:
    """One line on stderr; a stderr that takes nothing stops no work."""
    with suppress(OSError, ValueError):
        print("uge: " + " ".join(text.split()), file=sys.stderr, flush=True)


def _drop_output() -> None:
    """What stdout still holds goes nowhere, or Python would try again at exit and end with a code of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    common = _Parser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    stored = _Parser(add_help=False, parents=[common])
    stored.add_argument(
        "--store",
        type=_text,
        metavar="DIR",
        default=None,
        help="where runs live (default: $UGE_STORE, else ./uge-store)",
    )
    top = _Parser(prog="uge", description="Train debiased graph embeddings and audit what any embedding gives away.")
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    data = commands.add_parser("data", help="look at a graph").add_subparsers(metavar="COMMAND", required=True)
    one = data.add_parser("inspect", parents=[stored], help="roles of columns, counts and messages")
    _data_arguments(one)
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.set_defaults(command=_inspect)
    one = data.add_parser(
        "make-sample",
        parents=[common],
        help="write a graph whose true R and bias-free graph are known",
        description="Writes a planted graph as CSV, its card and its truth. The same arguments write the same bytes.",
    )
    one.add_argument("name", metavar="NAME", help="town (people) or titles (people and titles)")
    one.add_argument("out", type=_text, metavar="OUT", help="a new or empty folder")
    one.add_argument("--seed", type=_whole, required=True, help="keys all draws")
    one.add_argument("--nodes", type=_whole, metavar="N", help="people (default: town 2000, titles 600)")
    one.add_argument("--items", type=_whole, metavar="M", help="titles (default 400)")
    one.add_argument("--edges", type=_whole, metavar="E", help="expected edges (default: ten a person in town)")
    one.add_argument("--structure", help="chung-lu (default) or kronecker")
    one.set_defaults(command=_make_sample)

    one = commands.add_parser("train", parents=[stored], help="train one run and audit it")
    _training_arguments(one)
    one.add_argument("--sensitive", type=_text, metavar="A,B", help="attributes to debias, jointly")
    one.add_argument("--backbone", default="node2vec", help=f"one of {', '.join(names('backbones'))}")
    one.add_argument("--method", default="none", help=f"one of {', '.join(names('debias.methods'))}")
    one.add_argument("--lam", type=_number, metavar="L", help="weight of the penalty, 0 or more")
    one.add_argument("--seed", type=_whole, default=0, help="initialisation and the method's draws (default 0)")
    one.add_argument("--json", action="store_true", help="print the audit as one JSON object")
    one.set_defaults(command=_train)

    one = commands.add_parser("sweep", parents=[stored], help="train and audit a grid of runs")
    _training_arguments(one)
    one.add_argument(
        "--sensitive", type=_text, metavar="A,B+C", help="attributes, each in turn; A+B debiases A and B jointly"
    )
    one.add_argument(
        "--backbone", type=_listed, default="node2vec", metavar="B,..", help=f"of {', '.join(names('backbones'))}"
    )
    one.add_argument(
        "--methods", type=_listed, default="none", metavar="M,..", help=f"of {', '.join(names('debias.methods'))}"
    )
    one.add_argument("--lams", type=_numbers, default=[], metavar="L,..", help="for the methods that have a penalty")
    one.add_argument(
        "--warm",
        action="store_true",
        help="train the middle lambda alone and the others from its end, in a fifth of the epochs "
        "(--set warm_epochs=N): a quick look at a path, not the runs that training anew would give",
    )
    one.add_argument("--seeds", type=_wholes, default=[0], metavar="S,..", help="default 0")
    one.add_argument("--dry-run", action="store_true", help="say what would be trained, and stop")
    one.add_argument("--json", action="store_true", help="print a list of audits")
    one.set_defaults(command=_sweep)

    one = commands.add_parser(
        "audit",
        parents=[stored],
        help="audit a stored run or a file of embeddings, or compare two",
        description="Shows or computes the audit of a stored run, or of embeddings from elsewhere, which become a run of "
        "the store; with --against, what two of them differ by.",
    )
    one.add_argument("run_id", metavar="RUN_ID", nargs="?", help="with --against several of one method, as ID,ID")
    one.add_argument(
        "--embeddings",
        type=_text,
        metavar="FILE",
        help="instead of a run: .npy, .npz, .csv, .tsv, .parquet, word2vec, .pt",
    )
    one.add_argument("--sensitive", type=_text, metavar="A,B", help="only these attributes")
    one.add_argument(
        "--attackers",
        type=_listed,
        metavar="X,Y",
        help="measure anew with these: linear, trees, mlp, knn, graph, or all (default: the stored audit)",
    )
    one.add_argument(
        "--crossings",
        type=_listed,
        metavar="A+B,..",
        help="measure anew, and the leakage of these pairs of attributes together",
    )
    one.add_argument(
        "--against", type=_text, metavar="RUN_ID", help="print differences to this run, or to runs as ID,ID"
    )
    one.add_argument(
        "--data",
        type=_text,
        metavar="DATA",
        help="of --embeddings the graph; of a run, where it has moved since training",
    )
    one.add_argument(
        "--attributes", type=_listed, metavar="A,B", help="of --embeddings: these columns are the attributes"
    )
    one.add_argument(
        "--score",
        metavar="S",
        help="of --embeddings: a pair's score, dot (default), cosine, or distance as CNE's (distance:3 with another sigma_2)",
    )
    one.add_argument(
        "--split-seed", type=_whole, metavar="S", help="of --embeddings: its training used this split of ours"
    )
    one.add_argument("--unknown-ids", metavar="U", help="of --embeddings: rows of no node, refuse (default) or drop")
    one.add_argument("--json", action="store_true", help="print the audit as one JSON object")
    one.add_argument(
        "--policy", type=_text, metavar="FILE", help="judge the audit by the rules of a YAML file; exit code 0, 1 or 3"
    )
    one.set_defaults(command=_audit)

    one = commands.add_parser(
        "verify",
        parents=[stored],
        help="check that a report still says what was measured",
        description="Compares a report's SHA-256, shape and policy with its content, then audits the stored run again and "
        "names the first difference.",
    )
    one.add_argument("report", type=_text, metavar="REPORT.json", help="what audit, train or sweep printed with --json")
    one.add_argument("--data", type=_text, metavar="DATA", help="the graph, where it has moved since training")
    one.set_defaults(command=_verify)

    one = commands.add_parser(
        "report",
        parents=[stored],
        help="write audits as HTML, PDF, JSON or CSV",
        description="One offline file per format, all from the same stored audits; each prints the SHA-256 of every record.",
    )
    one.add_argument("runs", nargs="+", metavar="RUN", help="ids of audited runs")
    one.add_argument("--out", required=True, metavar="PATH", help="a folder, or a file whose ending says the format")
    one.add_argument(
        "--format", type=_listed, metavar="F,..", help="of html, pdf, json, csv (default: the file's, else html)"
    )
    one.add_argument("--title", default="Audit of graph embeddings", help="heading of the HTML and PDF")
    one.add_argument("--author", default="", help="who made the audit")
    one.add_argument("--purpose", default="", help="what the embedding is for and what the audit covers")
    one.add_argument(
        "--scenarios", type=_listed, default=[], metavar="S,..", help="stored what-if scenarios to add, by id or name"
    )
    one.set_defaults(command=_report)

    runs = commands.add_parser("runs", help="stored runs").add_subparsers(metavar="COMMAND", required=True)
    one = runs.add_parser("list", parents=[stored], help="all runs, the newest first")
    one.add_argument("--archived", action="store_true", help="archived runs too")
    one.add_argument("--json", action="store_true", help="print one JSON list")
    one.set_defaults(command=_list)
    one = runs.add_parser("show", parents=[stored], help="config, environment, diagnostics and audit of a run")
    one.add_argument("run_id", metavar="RUN_ID")
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.set_defaults(command=_show)
    one = runs.add_parser("export", parents=[stored], help="write a run's embeddings or edge weights")
    one.add_argument("run_id", metavar="RUN_ID")
    one.add_argument("--what", type=_listed, default="embeddings", metavar="W,..", help="of embeddings, weights")
    one.add_argument("--out", type=_text, required=True, metavar="DIR", help="the folder to write to")
    one.add_argument("--data", type=_text, metavar="DATA", help="the graph, where it has moved since training")
    one.set_defaults(command=_export)
    one = runs.add_parser(
        "resume",
        parents=[stored],
        help="go on with a run that was cut off, and with those of the same pass",
        description="Goes on from the run's checkpoint, with the runs that trained in the same pass; without one it is "
        "trained from its start. On the CPU the result has the bits of a training that was never cut off.",
    )
    one.add_argument("run_id", metavar="RUN_ID")
    one.add_argument("--data", type=_text, metavar="DATA", help="the graph, where it has moved since training")
    one.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    one.set_defaults(command=_resume)
    one = runs.add_parser(
        "archive",
        parents=[stored],
        help="put runs out of sight, or bring them back",
        description="An archived run is left out of lists and of the dashboard's choices. Nothing of it is removed, it can "
        "still be named by its id, and training the same again brings it back.",
    )
    one.add_argument("run_ids", nargs="+", metavar="RUN_ID")
    one.add_argument("--undo", action="store_true", help="bring them back")
    one.set_defaults(command=_archive)
    one = runs.add_parser("delete", parents=[stored], help="remove a run and all its files")
    one.add_argument("run_id", metavar="RUN_ID")
    one.set_defaults(command=_delete)

    one = commands.add_parser(
        "bench",
        parents=[stored],
        help="time training against the same written plainly",
        description="Ratios within one run on this machine: our engine against the paper's recipe word for word, and "
        "against cheaper losses, in plain torch and torch-geometric. A quiet machine and some minutes are needed.",
    )
    one.add_argument("data", type=_text, nargs="*", metavar="DATA", help="default: sample:town sample:titles")
    one.add_argument("--what", type=_listed, metavar="P,..", help="of epochs, lambdas, scaling (default: all)")
    one.add_argument("--backbone", type=_listed, metavar="B,..", help="default: node2vec,gcn,sgc,gat; bipartite: mf")
    one.add_argument("--nodes", type=_wholes, metavar="N,..", help="scaling: default 10000,100000,1000000")
    one.add_argument("--degree", type=_number, metavar="D", help="scaling: mean degree (default 10)")
    one.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    one.add_argument("--quick", action="store_true", help="small and inexact, to see that it works")
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.set_defaults(command=_bench)

    one = commands.add_parser(
        "rivals",
        parents=[stored],
        help="train and audit all methods beside one another",
        description="One table of what each method hides of an attribute, from whom, and what it costs: its default lambda, "
        "the same split, several seeds. A method that cannot serve this graph is listed with the reason.",
    )
    _data_arguments(one)
    one.add_argument("--sensitive", type=_text, required=True, metavar="A", help="the attribute to hide")
    one.add_argument("--backbone", default="node2vec", help=f"one of {', '.join(names('backbones'))}")
    one.add_argument("--methods", type=_listed, default=[], metavar="M,M:L,..", help="methods, as uge-c or uge-c:1.9")
    one.add_argument("--seeds", type=_wholes, default=[0, 1, 2], metavar="S,..", help="default 0,1,2")
    one.add_argument("--epochs", type=_whole, help="full passes over the training edges (default 800)")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting; repeatable")
    one.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    one.add_argument(
        "--attackers", type=_listed, metavar="X,Y", help="of linear, trees, mlp, knn, graph (default: all)"
    )
    one.add_argument(
        "--rows", type=_text, metavar="FILE", help="JSON lines: what is measured is added, what is there is not redone"
    )
    one.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    one.add_argument("--json", action="store_true", help="print one JSON object")
    one.set_defaults(command=_rivals)

    one = commands.add_parser("worker", parents=[stored], help="work off the dashboard's queue of jobs, then end")
    one.add_argument(
        "--lane", choices=("cpu", "gpu"), default="cpu", help="the jobs of the processor (default) or of a GPU"
    )
    one.set_defaults(command=_worker)

    one = commands.add_parser(
        "whatif-worker", parents=[stored], help="answer the dashboard's What-if page, and end when nobody asks"
    )
    one.add_argument("--parent", type=_text, metavar="PID:BIRTH", help="end with this process")
    one.set_defaults(command=_whatif_worker)

    store = commands.add_parser("store", help="what the store keeps").add_subparsers(metavar="COMMAND", required=True)
    one = store.add_parser(
        "purge",
        parents=[stored],
        help="remove what is older than an age",
        description="Removes runs with their embeddings, uploads, scenarios, finished jobs and checkpoints, and says what "
        "was removed; what is at work stays.",
    )
    one.add_argument("--older-than", required=True, metavar="AGE", help="12h, 30d, 4w; 0d for everything")
    one.add_argument("--dry-run", action="store_true", help="say what would be removed, and stop")
    one.set_defaults(command=_purge)

    one = commands.add_parser(
        "doctor",
        parents=[stored],
        help="look at what this machine has, and say what is missing",
        description="Looks at Python, packages, compiled kernels, devices, the store, memory, disk, the browser that "
        "prints PDFs and the port. Exit code 1 where something will not work.",
    )
    one.add_argument("--port", type=_whole, help="where the dashboard would listen (default 8501)")
    one.add_argument("--json", action="store_true", help="print one JSON list")
    one.set_defaults(command=_doctor)

    one = commands.add_parser(
        "methods", parents=[common], help="what each method and backbone does, supports and cannot, with its source"
    )
    one.add_argument("name", metavar="NAME", nargs="?", help="of a method or backbone (default: list the methods)")
    one.add_argument("--markdown", action="store_true", help="print the page docs/methods.md")
    one.set_defaults(command=_methods)

    one = commands.add_parser("app", parents=[stored], help="open the dashboard")
    one.add_argument("--port", type=_whole, help="default: Streamlit's own setting, 8501")
    one.set_defaults(command=_app)
    return top


def _data_arguments(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "data",
        type=_text,
        metavar="DATA",
        help="a folder, FOLDER:NAME where it holds several graphs, sample:town, sample:titles, or pyg:NAME, one of "
        "PyG's datasets, which is fetched when it is first named and kept in the store (pyg: alone lists them)",
    )
    one.add_argument(
        "--attributes",
        type=_listed,
        metavar="A,B",
        help="exactly these columns are the attributes (default: the layout's)",
    )


def _training_arguments(one: argparse.ArgumentParser) -> None:
    _data_arguments(one)
    one.add_argument("--epochs", type=_whole, help="full passes over the training edges (default 800)")
    split = one.add_mutually_exclusive_group()
    split.add_argument("--split-seed", type=_whole, default=0, help="split, negatives and probe split (default 0)")
    split.add_argument("--split-seeds", type=_wholes, metavar="S,..", help="repeat everything on several splits")
    one.add_argument("--unknown", help="missing values: level, exclude or impute (default: the layout's)")
    one.add_argument("--hidden", default="impute", help="values hidden from the twin: impute (default) or exclude")
    one.add_argument("--exposure", default="both", help="both (default) or seen: no twin")
    one.add_argument("--validation", type=_number, help="share of training edges that picks the best epoch (default 0)")
    one.add_argument("--negatives", help="shared (default) or listed, the paper's recipe")
    one.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    one.add_argument("--deterministic", action="store_true", help="the same bits each time; the CPU does so anyway")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="any other setting; repeatable")
    one.add_argument("--solo", action="store_true", help="train each run in a pass of its own")
    one.add_argument("--force", action="store_true", help="train although a finished run is there")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def _text(text: str) -> str:
    if not _words(text):
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return text


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(_words(_text(text))))


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in _listed(text)]


def _wholes(text: str) -> list[int]:
    return [_whole(part) for part in _listed(text)]


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# What has a flag of its own, under each name it may be asked for; the first that the command has is named.
_FLAGS = {
    "seed": ("seed", "seeds"),
    "lam": ("lam", "lams"),
    "lambda": ("lam", "lams"),
    "method": ("method", "methods"),
    "split_seed": ("split_seed",),
} | {name: (name,) for name in ("sensitive", "backbone", "unknown", "hidden", "exposure", "attributes", "device")}


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The training settings that were given."""
    options = _pairs(args.set)
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


def _pairs(given: list[str]) -> dict[str, str]:
    """What --set was given."""
    options: dict[str, str] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {pair} is not allowed; write --set KEY=VALUE, such as --set dim=32")
        if key in options:
            raise ConfigError(f"--set {key} is given twice; keep one")
        options[key] = value
    return options


def _load(
    spec: str, columns: list[str] | None, store: str | None, *, may_fetch: bool = True
) -> tuple[AttributedGraph, dict[str, Any]]:
    """The graph, and how to load it again."""
    from uge_core.datasets import lasting, load

    with _Progress(sys.stderr) as on_progress:
        graph = load(spec, attributes=columns, store=store, may_fetch=may_fetch, on_progress=on_progress)
    return graph, {"spec": lasting(spec), "attributes": columns}


def _load_again(run: StoredRun, data: str | None, store: str | None, *, ids: bool = False) -> AttributedGraph:
    """The graph a run was trained on, which is made sure of; with `ids` that its nodes are called the same too."""
    from uge_core.explore.whatif.source import with_scenario
    from uge_core.runs.data import check_data

    source = run.dataset.get("source") or {}
    spec = data or source.get("spec")
    if spec is None:
        raise StoreError(f"run {run.id} does not say where its data lie; name them with --data DATA")
    try:
        # What a run was trained on is no request to fetch it anew.
        graph, _ = _load(spec, source.get("attributes"), store, may_fetch=data is not None)
    except GraphError as error:
        hint = f"run {run.id} was trained on it" + ("" if data else "; name its place now with --data DATA")
        raise type(error)(f"{error} ({hint})") from None
    graph = with_scenario(graph, source)
    check_data(run, graph, ids=ids)
    return graph


def _store(args: argparse.Namespace) -> RunStore:
    return RunStore(args.store)


def _print_json(record: Any) -> None:
    # What another encoding lacks is written as JSON's own escapes.
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf8")
    print(json.dumps(record, indent=2, ensure_ascii=not utf8))


def _inspect(args: argparse.Namespace) -> int:
    from uge_core.datasets import describe, inspect

    try:
        graph, _ = _load(args.data, args.attributes, args.store)
    except GraphError as error:
        if isinstance(error, DatasetMissing) or not _content_is_at_fault(args.data, args.attributes, args.store):
            raise
        if args.json:
            fault = {"level": "blocking", "code": "unusable", "text": str(error)}
            _print_json({"name": args.data, "messages": [fault]})
        return _complain(str(error), args.debug, CHECK_FAILED)
    found = inspect(graph)
    if args.json:
        _print_json(found)
    else:
        print(describe(graph))
    return CHECK_FAILED if any(m["level"] == "blocking" for m in found["messages"]) else DONE


def _make_sample(args: argparse.Namespace) -> int:
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


def _train(args: argparse.Namespace) -> int:
    from uge_core.runs.sweep import sweep

    split_seeds = args.split_seeds or [args.split_seed]
    if args.json and len(split_seeds) > 1:
        raise ConfigError("train --json prints one audit; for several splits use uge sweep --split-seeds")
    graph, source = _load(args.data, args.attributes, args.store)
    with _Progress(sys.stderr) as on_progress:
        keep_freed_memory()
        done = sweep(
            graph,
            sensitive=_joint(args.sensitive),
            methods=[args.method],
            lams=[] if args.lam is None else [args.lam],
            seeds=[args.seed],
            split_seeds=split_seeds,
            backbones=[args.backbone],
            store=_store(args),
            force=args.force,
            device=args.device,
            deterministic=args.deterministic,
            solo=args.solo,
            on_progress=on_progress,
            source=source,
            **_settings(args),
        )
    if args.json:
        _print_json(done[0].audit)
    else:
        for run in done:
            print(_audit_text(run.rows))
            print(run.id)
    return _evidence(row for run in done for row in run.rows)


def _joint(text: str | None) -> str:
    return "+".join(_words((text or "").replace("+", ",")))


def _evidence(rows: Iterable[dict[str, Any]]) -> int:
    """The exit code: whether any leakage could be measured, where some was asked for."""
    leakage = [r["evidence"] for r in rows if r["attacker"]]
    return DONE if "ok" in leakage or not leakage else NOT_ENOUGH_EVIDENCE


def _sweep(args: argparse.Namespace) -> int:
    from uge_core.runs.names import config_words
    from uge_core.runs.plan import plan
    from uge_core.runs.sweep import sweep, usable

    graph, source = _load(args.data, args.attributes, args.store)
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
    store = _store(args)
    if args.dry_run:
        planned = plan(graph, **grid)
        there = {p.run_id: store.find(p.run_id) for p in planned}
        rows: list[dict[str, Any]] = []
        for p in planned:
            run = there[p.run_id]
            stored = run is not None and usable(run) and not args.force
            rows.append({"run_id": p.run_id, "config": p.config.to_json(), "plan": "stored" if stored else "train"})
        if args.json:
            _print_json(rows)
        else:
            for row in rows:
                print(row["run_id"], row["plan"], config_words(row["config"]), sep="  ")
        return DONE
    with _Progress(sys.stderr) as on_progress:
        keep_freed_memory()
        done = sweep(
            graph,
            store=store,
            force=args.force,
            device=args.device,
            deterministic=args.deterministic,
            solo=args.solo,
            on_progress=on_progress,
            source=source,
            **grid,
        )
    if args.json:
        _print_json([run.audit for run in done])
    else:
        for run in done:
            print(run.id)
    return _evidence(row for run in done for row in run.rows)


def _audit(args: argparse.Namespace) -> int:
    from uge_core.audit.policy import read as read_policy
    from uge_core.training.config import split_names

    if (args.run_id is None) == (args.embeddings is None):
        raise ConfigError("uge audit takes either a RUN_ID or --embeddings FILE; name one of the two")
    if args.embeddings is None:
        for name in ("attributes", "score", "split_seed", "unknown_ids"):
            if getattr(args, name) is not None:
                raise ConfigError(f"--{name.replace('_', '-')} is for --embeddings FILE; a stored run has its own")
    attributes = split_names(args.sensitive) if args.sensitive else None
    if args.attackers == ["all"]:
        args.attackers = list(names("audit.attackers"))
    for name in args.attackers or ():
        find("audit.attackers", name)
    if args.against:
        if args.crossings:
            raise ConfigError("--crossings measures one audit; leave it or --against out")
        if args.policy:
            raise ConfigError("--policy judges one audit; leave it or --against out")
        return _compare(args, attributes)
    policy = read_policy(args.policy) if args.policy else None
    store = _store(args)
    if args.embeddings is not None:
        record = _audit_file(args, attributes, store)
    else:
        record = _audit_stored(args, attributes, store)
    verdict = policy.check(record["rows"]) if policy else None
    if verdict:
        record = seal(record | {"policy": verdict.to_json()})
    if args.json:
        _print_json(record)
    else:
        print(_audit_text(record["rows"]))
        if verdict:
            print(verdict.text())
        if args.embeddings is not None:
            print(record["run_id"])
    return verdict.exit_code if verdict else _evidence(record["rows"])


def _audit_stored(args: argparse.Namespace, attributes: list[str] | None, store: RunStore) -> dict[str, Any]:
    """The record of a stored run: the stored one, or a new one where there is none or attackers are named."""
    run = store.load(args.run_id)
    anew = bool(args.attackers or args.crossings)
    fresh = anew or not run.audited or (run.config["method"] == EXTERNAL and _lacks(run, attributes))
    if fresh and run.finished is None:
        raise StoreError(f"run {run.id} is {run.status} and has no embedding to audit; train it first")
    graph = _load_again(run, args.data, args.store) if fresh or args.data else None
    if graph and attributes:
        attributes = [graph.attribute(name).name for name in attributes]
    record: dict[str, Any] = run.audit or {}
    if graph and fresh:
        with _Progress(sys.stderr) as on_progress:
            record = audit_record(
                run,
                graph,
                store,
                attributes=attributes if anew else None,
                crossings=args.crossings or (),
                attackers=args.attackers or DEFAULT_ATTACKERS,
                on_progress=on_progress,
            )
        _keep(run, record, store)
    return only(record, attributes) if attributes else record


def _lacks(run: StoredRun, attributes: list[str] | None) -> bool:
    """Whether a run was audited for some attributes alone, and not for these."""
    there = {row["attribute"].lower() for row in run.rows if row["attribute"]}
    return not {name.lower() for name in attributes or ()} <= there


def _audit_file(args: argparse.Namespace, attributes: list[str] | None, store: RunStore) -> dict[str, Any]:
    """The record of a file of embeddings, stored as a run and measured as asked for."""
    from uge_core.runs.external import add_external

    if args.data is None:
        raise ConfigError("--embeddings needs --data DATA, the graph whose nodes the file embeds")
    graph, source = _load(args.data, args.attributes, args.store)
    if attributes:
        attributes = [graph.attribute(name).name for name in attributes]
    z, given = _read_file(args, graph)
    run = add_external(z, graph, store, source=source, **given)
    _say_trust(args)
    with _Progress(sys.stderr) as on_progress:
        record = audit_record(
            run,
            graph,
            store,
            attributes=attributes,
            attackers=args.attackers or DEFAULT_ATTACKERS,
            crossings=args.crossings or (),
            on_progress=on_progress,
        )
    _keep(run, record, store)
    return record


def _keep(run: StoredRun, record: dict[str, Any], store: RunStore) -> None:
    """Stores an audit, unless the run's has what this one lacks: runs are compared by the same attackers."""
    trained = {"attackers": DEFAULT_ATTACKERS} if run.config["method"] != EXTERNAL else {}
    there = (run.audit or {}).get("asked") or trained
    if not there or covers(record["asked"], there):
        store.save_audit(run.id, record)
        return
    flags = {"attackers": "attackers", "crossings": "crossings", "attributes": "sensitive"}
    lists = {flag: there.get(name) for name, flag in flags.items()}
    named = [f"--{flag} {','.join(list(given))}" for flag, given in lists.items() if given and given is not True]
    every = "" if there.get("attributes") else ", of all attributes,"
    _remark(
        f"not stored, as the run's audit holds more; one with {' and '.join(named)} at least{every} takes its place"
    )


def _read_file(args: argparse.Namespace, graph: AttributedGraph) -> tuple[Any, dict[str, Any]]:
    """The embedding in a file, in the graph's order, and how its scores and split are to be taken."""
    from uge_core.datasets.embeddings import read_embedding

    z = read_embedding(args.embeddings, graph, unknown_ids=args.unknown_ids or "refuse", on_note=_remark)
    if (z == z[:1]).all():
        _remark("all nodes have the same vector, so that nothing can be read from it and no link told from another")
    return z, {"file": Path(args.embeddings).name, "score": args.score or "dot", "split_seed": args.split_seed}


def _say_trust(args: argparse.Namespace) -> None:
    if args.split_seed is not None:
        _remark(
            f"held-out NDCG@10 is right only if training left out the test edges of split seed {args.split_seed}, as uge train does"
        )


def _compare(args: argparse.Namespace, attributes: list[str] | None) -> int:
    from uge_core.explore.comparison import compare, compare_record, compare_seeds
    from uge_core.progress import Progress
    from uge_core.runs.audits import DEFAULT_ATTACKERS
    from uge_core.runs.external import external_config, external_id

    store = _store(args)
    b = [store.load(run_id) for run_id in _listed(args.against)]
    a = [store.load(run_id) for run_id in _listed(args.run_id)] if args.run_id else []
    sides = [{run.id: run.config for run in runs} for runs in (a, b)]
    if len(b) > 1 or len(a) > 1:
        if not a or args.attackers or args.data:
            raise ConfigError(
                "several runs are compared by their stored audits; leave --embeddings, --attackers and --data out"
            )
        found = compare_seeds(a, b)
    else:
        for run in (*a, *b):
            if run.finished is None:
                raise StoreError(f"run {run.id} is {run.status} and has no embedding to compare; train it first")
        if args.attributes:
            raise ConfigError("--attributes are those of the run in --against; leave this out")
        graph = _load_again(b[0], args.data, args.store)
        first: Any = a[0] if a else None
        options: dict[str, Any] = {}
        if first is None:
            first, given = _read_file(args, graph)
            sides[0] = {external_id(first, graph, given["score"]): external_config(first, graph, **given)}
            options = {"score": given["score"], "split_seed": given["split_seed"]}
        with _Progress(sys.stderr) as on_progress:
            found = compare(
                first,
                b[0],
                graph,
                sensitive=attributes,
                attackers=args.attackers or DEFAULT_ATTACKERS,
                progress=lambda text: on_progress(Progress("comparing", 0, 1, text)),
                **options,
            )
        _say_trust(args)
    record = compare_record(found, b[0].dataset, *sides)
    if attributes and len(b) > 1:
        record |= {"rows": about(record["rows"], attributes, args.run_id)}
    if args.json:
        _print_json(record)
    else:
        print(_comparison_text(record["rows"]))
    return DONE if any(row["evidence"] == "ok" for row in record["rows"]) else NOT_ENOUGH_EVIDENCE


def _one_line(text: str, most: int = 2_000) -> str:
    """What a file says of itself, as one line: it could write lines of its own, or move the terminal's cursor."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:most])
    return line + "..." * (len(text) > most)


def _verify(args: argparse.Namespace) -> int:
    from uge_core import datasets
    from uge_core.audit import record
    from uge_core.runs import verify

    if args.data:
        # A place that does not exist is a slip of the hand, not missing evidence.
        datasets.locate(args.data, store=args.store)
    store, findings = _store(args), []
    reports = record.read(args.report)
    for report in reports:
        if len(reports) > 1:
            print(_one_line(f"run {report.get('run_id')}"))
        for found in verify.verify(report, store, lambda run: _load_again(run, args.data, args.store)):
            findings.append(found)
            print(_one_line(f"{found.what}: {found.words}: {found.text}"), flush=True)
    return verify.exit_code(findings)


def _list(args: argparse.Namespace) -> int:
    from uge_core.runs.names import config_words

    store = _store(args)
    runs = store.list(audits=False, archived=args.archived)
    if args.json:
        _print_json([_run_record(run) for run in runs])
        return DONE
    if not runs:
        hidden = len(store.list(audits=False, archived=True))
        where = f"no runs in {args.store or default_root()}"
        print(
            f"{where} but {hidden} archived; --archived lists them" if hidden else f"{where}; uge train DATA makes one",
            file=sys.stderr,
        )
        return DONE
    rows = [
        [
            run.id,
            run.status + (", archived" if run.archived is not None else ""),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created)),
            run.dataset.get("name", ""),
            config_words(run.config) or run.reason or "",
            "audited" if run.audited else "",
        ]
        for run in runs
    ]
    print(_table(["run", "status", "started", "data", "config", "audit"], rows))
    return DONE


def _run_record(run: StoredRun) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "status": run.status,
        "reason": run.reason,
        "created": run.created,
        "finished": run.finished,
        "seconds": run.seconds,
        "device": run.device,
        "audited": run.audited,
        "archived": run.archived,
        "dataset": {k: v for k, v in run.dataset.items() if k != "source"},
        "config": run.config,
    }


def _show(args: argparse.Namespace) -> int:
    run = _store(args).load(args.run_id)
    record = _run_record(run) | {"folder": str(run.folder), "audit": run.audit}
    if run.finished is not None:
        record |= {"environment": run.environment, "diagnostics": run.diagnostics}
    if args.json:
        _print_json(record)
        return DONE
    for key in ("run_id", "status", "reason", "seconds", "device", "folder"):
        if record[key] is not None:
            print(f"{key + ':':10} {record[key]:.1f}" if key == "seconds" else f"{key + ':':10} {record[key]}")
    for key in ("dataset", "config", "environment", "diagnostics"):
        if record.get(key):
            print(f"\n{key}:")
            print("\n".join(f"  {k}: {json.dumps(v, ensure_ascii=False)}" for k, v in record[key].items()))
    if run.audited:
        print("\n" + _audit_text(run.rows))
    return DONE


def _export(args: argparse.Namespace) -> int:
    from uge_core.runs.audits import score_of
    from uge_core.runs.export import training_weights

    for name in args.what:
        if name not in ("embeddings", "weights"):
            raise ConfigError(f"--what {name!r} is not allowed; allowed: embeddings, weights")
    run = _store(args).load(args.run_id)
    if run.finished is None:
        raise StoreError(f"run {run.id} is {run.status} and has nothing to export; train it first")
    graph = _load_again(run, args.data, args.store, ids=True)
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
                (out / "score.json").write_text(json.dumps({"score": score_of(run)}), encoding="utf-8")
                print(out / "score.json")
                _remark(f"pairs are not scored by the dot product: audit this file with --score {score_of(run)}")
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
        _remark(
            f"{altered:,} ids would start a formula in a spreadsheet and got a leading quote in the CSV files{where}"
        )
    return DONE


def _export_embeddings(embedding: Any, ids: list[str], cells: list[str], out: Path) -> Iterable[Path]:
    """`embeddings.npy` and `ids.json` in the node table's order, and `embeddings.csv`, both in one."""
    import numpy as np

    np.save(out / "embeddings.npy", np.asarray(embedding))
    yield out / "embeddings.npy"
    (out / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
    yield out / "ids.json"
    rows = ([cell, *map(repr, row.tolist())] for cell, row in zip(cells, embedding, strict=True))
    yield _write_csv(out / "embeddings.csv", ["id", *(f"z{i}" for i in range(embedding.shape[1]))], rows)


def _write_csv(path: Path, header: list[str], rows: Iterable[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def _resume(args: argparse.Namespace) -> int:
    from uge_core.runs.plan import DEVICES
    from uge_core.runs.sweep import resume

    if args.device not in DEVICES:
        raise ConfigError(f"device = {args.device!r} is not allowed; allowed: {', '.join(DEVICES)}")
    store = _store(args)
    graph = _load_again(store.load(args.run_id), args.data, args.store)
    with _Progress(sys.stderr) as on_progress:
        keep_freed_memory()
        done = resume(args.run_id, graph, store, device=args.device, on_progress=on_progress)
    for run in done:
        print(run.id)
    return _evidence(row for run in done for row in run.rows)


def _worker(args: argparse.Namespace) -> int:
    from uge_core.dashboard.jobs.worker import work

    if not work(_store(args), args.lane):
        _remark(f"another process works off the {args.lane} jobs of this store")
    return DONE


def _whatif_worker(args: argparse.Namespace) -> int:
    from uge_core.explore.whatif.server import serve

    pid, _, born = (args.parent or "").partition(":")
    if not serve(_store(args), parent=(int(pid), born) if pid.isdecimal() else None):
        _remark("another process answers what-if questions about this store")
    return DONE


def _archive(args: argparse.Namespace) -> int:
    _store(args).archive(args.run_ids, undo=args.undo)
    for run_id in args.run_ids:
        print(f"{'brought back' if args.undo else 'archived'} {run_id}")
    return DONE


def _delete(args: argparse.Namespace) -> int:
    for line in _store(args).delete(args.run_id):
        print(f"removed {line}")
    return DONE


def _report(args: argparse.Namespace) -> int:
    from uge_core.views.report import Sheet, report

    sheet = Sheet(args.title, args.author, args.purpose)
    for path in report(
        args.runs, args.out, formats=args.format, sheet=sheet, scenarios=args.scenarios, store=_store(args)
    ):
        print(path)
    return DONE


def _bench(args: argparse.Namespace) -> int:
    from uge_core.cli.bench.run import PARTS, bench
    from uge_core.cli.bench.tables import heading, sections

    parts = args.what or PARTS
    specs = (args.data or ["sample:town", "sample:titles"]) if set(parts) != {"scaling"} else []
    record = bench(
        [_load(spec, None, args.store)[0] for spec in specs],
        parts=parts,
        backbones=args.backbone or (),
        nodes=args.nodes or (),
        degree=args.degree,
        device=args.device,
        quick=args.quick,
        on_note=_remark,
    )
    if args.json:
        for warning in record["warnings"]:
            _remark(f"warning: {warning}")
        _print_json(record)
        return DONE
    print("\n".join(heading(record)))
    for title, head, rows in sections(record):
        print(f"\n{title}\n\n{_table(head, rows)}")
    return DONE


def _rivals(args: argparse.Namespace) -> int:
    from uge_core.runs.rivals import ATTACKERS, markdown, rivals, table

    record = rivals(
        _load(args.data, args.attributes, args.store)[0],
        args.sensitive,
        backbone=args.backbone,
        entries=args.methods,
        seeds=args.seeds,
        options=_pairs(args.set) | ({} if args.epochs is None else {"epochs": args.epochs}),
        attackers=args.attackers or ATTACKERS,
        rows=Path(args.rows) if args.rows else None,
        device=args.device,
        on_note=_remark,
    )
    if args.json:
        _print_json(record)
    else:
        print(markdown(*table(record)) if args.markdown else _table(*table(record)))
    return DONE


def _purge(args: argparse.Namespace) -> int:
    from uge_core.cli.purge import age, older_than

    done = left = 0
    for old in older_than(age(args.older_than), RunStore(args.store)):
        try:
            for line in [f"{old.what}, {old.age / 86400:.1f} days old"] if args.dry_run else old.remove():
                print(line)
            done += 1
        except UgeError as error:
            _remark(f"{old.what}: {error}")
            left += 1
    _remark(f"{done} things {'would be' if args.dry_run else 'were'} removed" + (f", {left} were not" if left else ""))
    return USER_ERROR if left else DONE


def _doctor(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from uge_core.cli.doctor import PORT, examine

    checks = examine(RunStore(args.store), port=PORT if args.port is None else args.port)
    if args.json:
        print(json.dumps(list(map(asdict, checks)), indent=2))
    else:
        print(_table(["", "", "found", "what to do"], [[c.verdict, c.name, c.found, c.remedy] for c in checks]))
    return CHECK_FAILED if any(c.verdict == "problem" for c in checks) else DONE


def _methods(args: argparse.Namespace) -> int:
    from uge_core.registry import unknown_name
    from uge_core.views import catalogue

    if args.markdown and args.name:
        raise ConfigError("--markdown prints the page of all methods; leave the name or --markdown out")
    if args.markdown:
        print(catalogue.markdown(), end="")
        return DONE
    known = {info.name: info for info in catalogue.methods()}
    if args.name is None:
        print(_table(["method", "", "lambda", "bipartite"], [_method_row(info) for info in known.values()]))
        return DONE
    known |= {info.name: info for info in catalogue.backbones()}
    if args.name not in known:
        raise ConfigError(unknown_name("method or backbone", args.name, tuple(known)))
    print(catalogue.plain(known[args.name]))
    return DONE


def _method_row(info: Info) -> list[str]:
    supports = dict(info.supports)
    return [
        info.name,
        f"{info.label}, {info.citation}",
        supports["Lambda"].split(" ")[0].replace("none", ""),
        supports["Bipartite"].split(":")[0],
    ]


def _app(args: argparse.Namespace) -> int:
    root = Path(__file__).resolve().parents[2]
    if not (root / "app.py").exists():
        raise ConfigError(
            f"the dashboard is not beside this package ({root / 'app.py'} is missing); run uge app from a checkout"
        )
    store = Path(args.store or default_root()).resolve()
    # without --port the port stays Streamlit's business, so that its variables and config file are heard
    port = [] if args.port is None else [f"--server.port={args.port}"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *port]
    env = os.environ | {"UGE_STORE": str(store)}
    if os.name == "posix":
        # The server takes this process's place, so that whoever stops `uge app` has stopped the server.
        os.chdir(root)
        os.execve(sys.executable, command, env)
    try:
        return subprocess.call(command, cwd=root, env=env)
    except KeyboardInterrupt:
        # Ctrl-C is how a dashboard is closed.
        return DONE


def _audit_text(records: Iterable[dict[str, Any]]) -> str:
    """The audit as a table: each number with its interval, floors and n."""
    from uge_core.views.rows import METRIC_LABELS

    rows = []
    for r in records:
        interval = "" if r["ci_low"] is None else f"[{r['ci_low']:.3f}, {r['ci_high']:.3f}]"
        floors = [
            f"{word} {r[key]:.3f}"
            for word, key in (("random", "floor_random"), ("majority", "floor_majority"))
            if r[key] is not None
        ]
        value = "not enough evidence" if r["value"] is None else f"{r['value']:.4f}"
        if r["value"] is not None and r["evidence"] != "ok":
            value += " (not enough evidence)"
        better = {"lower": "lower is better", "higher": "higher is better"}.get(r["direction"], r["direction"] or "")
        rows.append(
            [
                r["attribute"] or "",
                METRIC_LABELS.get(r["metric"], r["metric"]),
                r["attacker"] or "",
                r["variant"] or "",
                r["exposure"] or "",
                value,
                interval,
                ", ".join(floors),
                "" if r["n"] is None else f"{r['n']:,}",
                better,
            ]
        )
    head = ["attribute", "metric", "attacker", "variant", "exposure", "value", "95 % interval", "floors", "n", ""]
    return _table(head, rows)


def _comparison_text(records: Iterable[dict[str, Any]]) -> str:
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
    return _table(head, rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    lines = [[line[i] for i in kept] for line in [head, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(kept))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


class _Progress:
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
            print(text, end=end, file=self._stream, flush=True)

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
