"""`uge audit`: audits a stored run or a file of embeddings, or compares two."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from uge_core.audit.attacker_order import ordered_attackers
from uge_core.audit.metrics import MOST_PEOPLE
from uge_core.audit.record import covers, only, seal
from uge_core.cli.arguments import Parsers, add_command, evidence_code, nonempty, text_list, whole_number
from uge_core.cli.commands._compare import compare_with
from uge_core.cli.loading import load_again, load_graph, read_file, say_trust
from uge_core.cli.printing import ProgressLine, audit_text, print_json, remark
from uge_core.errors import ConfigError, StoreError
from uge_core.registry import find, names
from uge_core.runs.audits import DEFAULT_ATTACKERS, audit_record
from uge_core.runs.disclosure import EXACT
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun


def add(parsers: Parsers) -> None:
    """Declares `audit`."""
    one = add_command(
        parsers,
        "audit",
        run,
        help="audit a stored run or a file of embeddings, or compare two",
        description="Shows or computes the audit of a stored run, "
        "or of embeddings from elsewhere, which become a run of "
        "the store; with --against, what two of them differ by.",
    )
    one.add_argument("run_id", metavar="RUN_ID", nargs="?", help="with --against several of one method, as ID,ID")
    one.add_argument(
        "--embeddings",
        type=nonempty,
        metavar="FILE",
        help="instead of a run: .npy, .npz, .csv, .tsv, .parquet, word2vec, .pt",
    )
    one.add_argument("--sensitive", type=nonempty, metavar="A,B", help="only these attributes")
    one.add_argument(
        "--attackers",
        type=text_list,
        metavar="X,Y",
        help=f"measure anew with these: {', '.join(a.name for a in ordered_attackers())}, or all (default: the "
        "stored audit)",
    )
    one.add_argument(
        "--crossings",
        type=text_list,
        metavar="A+B,..",
        help="measure anew, and the leakage of these pairs of attributes together",
    )
    one.add_argument(
        "--against", type=nonempty, metavar="RUN_ID", help="print differences to this run, or to runs as ID,ID"
    )
    one.add_argument(
        "--data",
        type=nonempty,
        metavar="DATA",
        help="of --embeddings the graph; of a run, where it has moved since training",
    )
    one.add_argument(
        "--attributes", type=text_list, metavar="A,B", help="of --embeddings: these columns are the attributes"
    )
    one.add_argument(
        "--score",
        metavar="S",
        help="of --embeddings: a pair's score, dot (default), cosine, "
        "or distance as CNE's (distance:3 with another sigma_2)",
    )
    one.add_argument(
        "--split-seed", type=whole_number, metavar="S", help="of --embeddings: its training used this split of ours"
    )
    one.add_argument("--unknown-ids", metavar="U", help="of --embeddings: rows of no node, refuse (default) or drop")
    one.add_argument(
        "--rows",
        metavar="R",
        help="of --embeddings without ids: row i is the i-th node of the table (order) or the node with the i-th number (id); "
        "asked for where ids count in another order, from 0 or 1",
    )
    one.add_argument("--json", action="store_true", help="print the audit as one JSON object")
    one.add_argument(
        "--exact",
        action="store_true",
        help="leave out nobody: counts may then point at people; measured anew, not stored, not to be passed on",
    )
    one.add_argument(
        "--people",
        type=_people,
        metavar="N",
        help=f"measure anew, of at most so many people, or all (default: {MOST_PEOPLE:,} are drawn of more)",
    )
    one.add_argument(
        "--policy",
        type=nonempty,
        metavar="FILE",
        help="judge the audit by the rules of a YAML file; exit code 0, 1 or 3",
    )


def run(args: argparse.Namespace) -> int:
    """Prints an audit, stored or measured now, and the policy's verdict on it."""
    from uge_core.audit.policy import read as read_policy
    from uge_core.training.config import split_names

    if (args.run_id is None) == (args.embeddings is None):
        raise ConfigError("uge audit takes either a RUN_ID or --embeddings FILE; name one of the two")
    if args.embeddings is None:
        for name in ("attributes", "score", "split_seed", "unknown_ids", "rows"):
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
        if args.exact:
            raise ConfigError("--exact measures one audit; leave it or --against out")
        if args.people is not None:
            raise ConfigError("--people measures one audit; leave it or --against out")
        return compare_with(args, attributes)
    policy = read_policy(args.policy) if args.policy else None
    store = RunStore(args.store)
    if args.embeddings is not None:
        record = _audit_file(args, attributes, store)
    else:
        record = _audit_stored(args, attributes, store)
    drawn = record.get("asked", {}).get("people", MOST_PEOPLE)
    if policy and drawn < MOST_PEOPLE:
        raise ConfigError(
            f"--policy judges audits of {MOST_PEOPLE:,} people or of all; attackers who learn from {drawn:,} read less. "
            "Leave --people out or raise it"
        )
    verdict = policy.check(record["rows"]) if policy else None
    if verdict:
        record = seal(record | {"policy": verdict.to_json()})
    if args.exact:
        remark(EXACT)
    if args.json:
        print_json(record)
    else:
        print(audit_text(record["rows"]))
        if verdict:
            print(verdict.text())
        if args.embeddings is not None:
            print(record["run_id"])
    return verdict.exit_code if verdict else evidence_code(record["rows"])


def _audit_stored(args: argparse.Namespace, attributes: list[str] | None, store: RunStore) -> dict[str, Any]:
    """The record of a stored run: the stored one, or a new one where there is none or attackers are named."""
    run = store.load(args.run_id)
    anew = bool(args.attackers or args.crossings or args.exact or args.people is not None)
    stored = _stored(run)
    fresh = anew or stored is None or (run.config["method"] == EXTERNAL and _lacks(run, attributes))
    if fresh and run.finished is None:
        raise StoreError(f"run {run.id} is {run.status} and has no embedding to audit; train it first")
    graph = load_again(run, args.data, args.store) if fresh or args.data else None
    if graph and attributes:
        attributes = [graph.attribute(name).name for name in attributes]
    record = stored or {}
    if graph and fresh:
        with ProgressLine(sys.stderr) as on_progress:
            record = audit_record(
                run,
                graph,
                store,
                attributes=attributes if anew else None,
                crossings=args.crossings or (),
                attackers=args.attackers or DEFAULT_ATTACKERS,
                on_progress=on_progress,
                **_whom(args),
            )
        _keep(run, record, store)
    return only(record, attributes) if attributes else record


def _people(text: str) -> float:
    """A number of people, infinite for all."""
    return math.inf if text == "all" else whole_number(text)


def _whom(args: argparse.Namespace) -> dict[str, Any]:
    """What an audit is asked for beside: to leave out nobody, to measure more people or fewer."""
    exact: dict[str, Any] = {"exact": True} if args.exact else {}
    return exact if args.people is None else exact | {"people": None if math.isinf(args.people) else args.people}


def _stored(run: StoredRun, *, silently: bool = False) -> dict[str, Any] | None:
    """A run's audit, or None where there is none or it is damaged, which is said once."""
    try:
        return run.audit
    except StoreError as error:
        if not silently:
            remark(str(error))
        return None


def _lacks(run: StoredRun, attributes: list[str] | None) -> bool:
    """Whether a run was audited for some attributes alone, and not for these."""
    there = {row["attribute"].lower() for row in run.rows if row["attribute"]}
    return not {name.lower() for name in attributes or ()} <= there


def _audit_file(args: argparse.Namespace, attributes: list[str] | None, store: RunStore) -> dict[str, Any]:
    """The record of a file of embeddings, stored as a run and measured as asked for."""
    from uge_core.runs.external import add_external

    if args.data is None:
        raise ConfigError("--embeddings needs --data DATA, the graph whose nodes the file embeds")
    graph, source = load_graph(args.data, args.attributes, args.store)
    if attributes:
        attributes = [graph.attribute(name).name for name in attributes]
    z, given = read_file(args, graph)
    run = add_external(z, graph, store, source=source, **given)
    say_trust(args)
    with ProgressLine(sys.stderr) as on_progress:
        record = audit_record(
            run,
            graph,
            store,
            attributes=attributes,
            attackers=args.attackers or DEFAULT_ATTACKERS,
            crossings=args.crossings or (),
            on_progress=on_progress,
            **_whom(args),
        )
    _keep(run, record, store)
    return record


def _keep(run: StoredRun, record: dict[str, Any], store: RunStore) -> None:
    """Stores an audit, unless it is exact or the run's has what it lacks: runs are compared by the same attackers."""
    if record["asked"].get("exact"):
        return
    trained = {"attackers": DEFAULT_ATTACKERS} if run.config["method"] != EXTERNAL else {}
    there = (_stored(run, silently=True) or {}).get("asked") or trained
    if not there or covers(record["asked"], there):
        store.save_audit(run.id, record)
        return
    flags = {"attackers": "attackers", "crossings": "crossings", "attributes": "sensitive"}
    lists = {flag: there.get(name) for name, flag in flags.items()}
    named = [f"--{flag} {','.join(list(given))}" for flag, given in lists.items() if given and given is not True]
    if "people" in there:
        named.append(f"--people {there['people']} or more")
    elif "people" in record["asked"]:
        named.append("--people all")
    every = "" if there.get("attributes") else ", of all attributes,"
    remark(f"not stored, as the run's audit holds more; one with {' and '.join(named)} at least{every} takes its place")
