"""Audits of stored runs and of arrays, and the record they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from uge_core.audit import version
from uge_core.audit.attacker_order import DEFAULT_ATTACKERS as DEFAULT_ATTACKERS
from uge_core.audit.record import NAME, seal
from uge_core.audit.sampling import FEWEST_PEOPLE, MOST_PEOPLE, Sampling
from uge_core.debias.base import Method
from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit, split_links
from uge_core.graph.values import missing_policies
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.registry import build_options, find
from uge_core.runs.names import config_words
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun, Subject
from uge_core.training.config import RunConfig, split_names

if TYPE_CHECKING:
    from uge_core.audit import Audit
    from uge_core.audit.base import Row
    from uge_core.audit.job import Floors
    from uge_core.audit.ndcg import BiasFree
from uge_core.runs.data import check_data
from uge_core.runs.disclosure import EXACT, Everybody, Release, Sizes, note_told, release
from uge_core.runs.names import EXTERNAL, run_words


class Splits:
    """The link split of each config, drawn once per seed and shares."""

    def __init__(self, graph: AttributedGraph) -> None:
        self._graph = graph
        self._made: dict[tuple[float, float, int], LinkSplit] = {}

    def __call__(self, config: RunConfig) -> LinkSplit:
        """The split of a run's links."""
        key = (config.test_share, config.validation, config.split_seed)
        if key not in self._made:
            self._made[key] = split_links(self._graph, test_share=key[0], validation_share=key[1], seed=key[2])
        return self._made[key]


def audit_run(
    run: StoredRun | Subject,
    graph: AttributedGraph,
    floors: Floors | None = None,
    *,
    split: LinkSplit | None = None,
    attributes: Sequence[str] | None = None,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    crossings: Sequence[str] | bool = False,
    exact: bool = False,
    people: int | None = MOST_PEOPLE,
    sizes: Mapping[str, Sizes] | None = None,
    on_progress: OnProgress | None = None,
    on_share: Callable[[str, float], None] | None = None,
) -> Audit:
    """Audits a stored run: its embedding, and its twin where it has one.

    Args:
        run: the run.
        graph: the graph it was trained on; the fingerprint is checked.
        floors: where random floors are kept; None keeps none.
        split: the run's split, where it is at hand.
        attributes: names to audit; None audits all.
        attackers: which attackers to try, of ``registry.names("audit.attackers")``.
        crossings: pairs whose leakage is measured together, as "gender+region"; True: all pairs of those audited.
        exact: leave out nobody; such figures may point at people, and are for the eyes of who asks.
        people: of how many people at most figures are measured, drawn of more (`audit.sampling`); None: all.
        sizes: by attribute, people told of each group, where that follows from what was told before (`disclosure`).
        on_progress: called before the audit starts.
        on_share: called with what is being measured and the share done.

    Raises:
        StoreError: the graph is not the one the run was trained on.
    """
    from uge_core.audit import audit_embedding

    check_data(run, graph)
    for name in attackers:
        find("audit.attackers", name)
    rule = Everybody() if exact else Release(sizes or {})
    if run.config["method"] == EXTERNAL:
        if on_progress:
            on_progress(Progress("auditing", 0, 1, f"auditing {run.id} ({config_words(run.config, 'method', 'file')})"))
        seed = run.config.get("split_seed")
        return _audit_array(
            np.asarray(run.embedding),
            graph,
            split_seed=seed,
            attributes=attributes,
            attackers=tuple(attackers),
            crossings=crossings,
            score=run.config["score"],
            floors=floors,
            disclosure=rule,
            sampling=sampling_of(people),
        )
    config = RunConfig.from_json(run.config)
    split = split or Splits(graph)(config)
    if on_progress:
        on_progress(Progress("auditing", 0, 1, f"auditing {run.id} ({run_words(config)})"))
    return audit_embedding(
        np.asarray(run.embedding),
        graph,
        split,
        attributes=attributes,
        unknown=config.unknown,
        split_seed=config.split_seed,
        attackers=tuple(attackers),
        crossings=crossings,
        treated=config.sensitive,
        read=attributes_read(config, graph),
        twin=None if run.twin is None else np.asarray(run.twin),
        bias_free=_bias_free(config, graph, split),
        calibrated=config.calibrated,
        score=config.score,
        notes=run.diagnostics.get("notes", {}),
        twin_notes=run.diagnostics.get("twin_notes", {}),
        floors=floors,
        disclosure=rule,
        sampling=sampling_of(people),
        progress=on_share,
    )


EVERYBODY: Mapping[str, Any] = {"people": None}
"""What a record was asked for that says nothing of how many people were drawn: nobody was."""


def sampling_of(people: int | None) -> Sampling:
    """The rule of at most so many people; None: all.

    Raises:
        ConfigError: too few to learn from and test on.
    """
    if people is not None and (isinstance(people, bool) or not isinstance(people, int) or people < FEWEST_PEOPLE):
        raise ConfigError(
            f"people = {people!r} is not allowed; allowed: a whole number from {FEWEST_PEOPLE:,}, or None for all"
        )
    return Sampling(people)


def score_of(run: StoredRun) -> str:
    """What a run's pairs are scored by, a name that `scores.scorer` knows."""
    if run.config["method"] == EXTERNAL:
        return str(run.config["score"])
    return RunConfig.from_json(run.config).score


def attributes_read(config: RunConfig, graph: AttributedGraph) -> tuple[str, ...]:
    """The attributes whose values entered training: those treated, and all where the method's cells are of all."""
    method_cls = find("debias.methods", config.method)
    if not method_cls.reads_attributes:
        return ()
    method: Method = build_options(method_cls, config.method_options, config.method)
    return tuple(a.name for a in graph.audited) if method.reads_others else config.sensitive


def audit_record(
    run: StoredRun, graph: AttributedGraph, store: RunStore, *, split: LinkSplit | None = None, **options: Any
) -> dict[str, Any]:
    """The sealed `uge-audit/1` record of a stored run; options as in `audit_run`."""
    asked, options = audit_question(run, graph, store, options)
    rows = audit_run(run, graph, store.floors, split=split, **options).to_json()
    return sealed_record(run, rows, asked)


def audit_question(
    run: StoredRun, graph: AttributedGraph, store: RunStore, options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an audit of a stored run is asked, beside what was told of the same people before; the ledger notes it.

    Args:
        run: the run.
        graph: the graph it was trained on.
        store: whose ledger counts.
        options: as in `audit_run`.

    Returns:
        What the record keeps of it, and the options for `audit_run`.
    """
    # With the defaults of today, so that whoever verifies the record later asks for the same.
    asked: dict[str, Any] = {"attributes": None, "attackers": list(DEFAULT_ATTACKERS)}
    asked |= {name: value for name, value in options.items() if name not in ("on_progress", "on_share", "people")}
    drawn = sampling_of(options.get("people", MOST_PEOPLE)).drawn(graph.people.stop)
    asked |= {} if drawn is None else {"people": drawn}
    if asked.get("exact"):
        return asked, dict(options)
    check_data(run, graph)
    policies = missing_policies(graph, run.config.get("unknown"))
    rule = release(graph, policies, store)
    note_told(store, graph, policies, rule)  # before it is measured: another audit may begin meanwhile
    sizes = {"sizes": rule.sizes} if rule.sizes else {}
    return asked | sizes, {**options, **sizes}


def sealed_record(run: StoredRun, rows: Iterable[Any], asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A run's `uge-audit/1` record around `rows`, with its SHA-256; `asked` is what the audit was asked for."""
    dataset = {key: run.dataset[key] for key in ("name", "fingerprint", "num_nodes", "num_edges")}
    head = {
        "schema": NAME,
        "audit_version": version.VERSION,
        "run_id": run.id,
        "dataset": dataset,
        "config": run.config,
    }
    if asked and asked.get("exact"):
        head["disclosure"] = EXACT
    return seal(head | {"asked": dict(asked or {}), "rows": list(rows)})


def audit(
    embedding: npt.ArrayLike | StoredRun,
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] | None = None,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    crossings: Sequence[str] | bool = False,
    exact: bool = False,
    people: int | None = MOST_PEOPLE,
    split_seed: int | None = None,
    test_share: float | None = None,
    validation: float | None = None,
    score: str = "dot",
) -> Audit:
    """Audits a stored run, or any embedding of a graph's nodes, wherever it comes from.

    A stored run brings its config, split and twin: the rows are those of its stored audit. Of an
    array nobody knows which edges and whose values its training saw. Without `split_seed` no edge
    counts as held out: link quality is not measured, and EO covers all edges. With it the split is
    drawn again, and the NDCG is right only if training used exactly that split (the same seed and
    shares, on the same data): an embedding that saw the held-out edges looks better than it is. The
    exposure of an array's rows is null; leakage may be understated if training read the values.

    Args:
        embedding: a run of `train`, `sweep` or the store; or (N, d), one row per node in the node
            table's order.
        graph: the graph it embeds.
        sensitive: attribute names; None audits every attribute of people.
        attackers: which attackers to try, of ``registry.names("audit.attackers")``.
        crossings: pairs whose leakage is measured together, as "gender+region"; True: all pairs of those audited.
        exact: leave out nobody. Without it small groups are left out, and others that hide how small; see
            `runs.disclosure`.
        people: of how many people at most figures are measured, drawn of more; None: all, however long that takes.
        split_seed: of an array, the split it was trained on; it keys the attackers' split of the
            people too, which is 0's where it is not given.
        test_share: of an array with `split_seed`, the share of edges held out; None takes the layout's.
        validation: of an array with `split_seed`, the share of training edges set aside; None takes none.
        score: of a pair of nodes of an array, "dot", "cosine" or "distance" (CNE's; "distance:3" with another sigma_2),
            for NDCG, DP and EO; leakage is of the vectors as they are.

    Returns:
        The audit; ``audit.frame()`` is a table.

    Raises:
        ConfigError: the embedding has not one finite row per node, or a setting is not allowed.
        GraphError: an attribute the graph does not have.
        StoreError: the run was trained on other data.
    """
    names = None if sensitive is None else split_names(sensitive if isinstance(sensitive, str) else list(sensitive))
    if names == []:
        raise ConfigError("sensitive names no attribute; name at least one, or leave it out for all")
    given = {"split_seed": split_seed, "test_share": test_share, "validation": validation}
    chosen = [name for name, value in given.items() if value is not None]
    if isinstance(embedding, StoredRun):
        if chosen:
            raise ConfigError(f"{', '.join(chosen)}: a stored run brings its own split; leave this out")
        if score != "dot":
            raise ConfigError("score: a stored run brings its own; leave this out")
        return audit_run(
            embedding, graph, attributes=names, attackers=attackers, crossings=crossings, exact=exact, people=people
        )
    if chosen and split_seed is None:
        raise ConfigError(f"{', '.join(chosen)} needs split_seed, the seed of the split that training used")
    if split_seed is not None and (
        isinstance(split_seed, bool) or not isinstance(split_seed, int | np.integer) or split_seed < 0
    ):
        raise ConfigError(f"split_seed = {split_seed!r} is not allowed; allowed: a whole number of 0 or more, or None")
    for name, share in (("test_share", test_share), ("validation", validation)):
        if share is not None and (isinstance(share, bool) or not isinstance(share, int | float | np.number)):
            raise ConfigError(f"{name} = {share!r} is not a number; allowed: 0 to 0.9")
    return _audit_array(
        as_embedding(embedding, graph),
        graph,
        split_seed=split_seed,
        test_share=test_share,
        validation=validation or 0.0,
        attributes=names,
        attackers=tuple(attackers),
        crossings=crossings,
        score=score,
        disclosure=Everybody() if exact else Release(),
        sampling=sampling_of(people),
    )


def _audit_array(
    z: npt.NDArray[np.float32],
    graph: AttributedGraph,
    *,
    split_seed: int | None,
    test_share: float | None = None,
    validation: float = 0.0,
    score: str,
    **options: Any,
) -> Audit:
    """The audit of an embedding that nobody here trained, with what has to be taken on trust said in its rows."""
    from uge_core.audit import Audit, audit_embedding

    split = None
    if split_seed is not None:
        split = split_links(graph, test_share=test_share, validation_share=validation, seed=int(split_seed))
    rows = audit_embedding(z, graph, split, split_seed=int(split_seed or 0), score=score, **options)
    same = "all nodes have the same vector, so nothing can be read from it" if (z == z[:1]).all() else None
    trust = None if split is None else f"right only if training left out the test edges of split seed {split_seed}"

    def said(row: Row) -> Row:
        held_out = row.attacker is None and row.variant == "held-out" and row.value is not None
        notes = (row.note, same, trust if held_out else None)
        return replace(row, note="; ".join(filter(None, notes)) or None)

    return Audit(tuple(map(said, rows)))


def as_embedding(embedding: Any, graph: AttributedGraph) -> npt.NDArray[np.float32]:
    """An embedding from elsewhere as numbers; its shape is the audit's to check."""
    try:
        z = np.asarray(embedding)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"the embedding is no array: {error}; allowed: ({graph.num_nodes}, d) numbers") from None
    if z.dtype.kind not in "fiu":
        raise ConfigError(f"the embedding holds {z.dtype}; allowed: ({graph.num_nodes}, d) real numbers")
    with np.errstate(over="ignore"):
        return z.astype(np.float32)


def _bias_free(config: RunConfig, graph: AttributedGraph, split: LinkSplit) -> Mapping[str, BiasFree]:
    """Weights of the held-out edges by sensitive set: the run's own, or each attribute in turn for a run without."""
    from uge_core.training.weights import bias_free_gains

    sets = [config.sensitive] if config.sensitive else [(a.name,) for a in graph.audited if (a.sizes > 0).sum() > 1]
    return {"+".join(names): bias_free_gains(graph, split, names, unknown=config.unknown) for names in sets}
