"""What can be trained on a graph, as a form: fields from the config classes, and what a choice would take.

Every field is declared once, as an `option` of `RunConfig`, a backbone or a method; its help, choices and
range come from there. The time is a range: what passes and audits took on this machine (`timing`), else a rule of
thumb, and says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal

from uge_core.dashboard.jobs.queue import Queue, gpu, lane
from uge_core.datasets import lasting, load
from uge_core.errors import ConfigError
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.suppression import SUPPRESSED
from uge_core.machine import cores
from uge_core.registry import find, names
from uge_core.runs import timing
from uge_core.runs.disclosure import told
from uge_core.runs.places import HERE, offered
from uge_core.runs.plan import Planned, plan
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.sweep import usable
from uge_core.runs.timing import Span, between
from uge_core.training.config import RunConfig, unread

_OWN = ("epochs", "seed", "split_seed", "warm_epochs")  # asked for by the form itself
UNKNOWN = {
    "level": "a value of their own",
    "exclude": "leave those people out of the tables",
    "impute": "draw a value from the neighbours",
}
_COPIES = "copies trained without the people tested"
DEVICES = {"auto": "fastest there is", "cpu": "processor", "cuda": "graphics card"}


@dataclass(frozen=True)
class Field:
    """One setting.

    Attributes:
        name: as in ``--set NAME=VALUE``.
        label: what a form calls it.
        owner: "Training", or the label of the backbone or methods that read it.
        help: what it is.
        kind: number, whole, yes-no, choice or text.
        default: what it is where nothing is said; None where the methods have different ones.
        choices: of a choice.
        words: what a form calls each of them.
        low: the smallest allowed, or None.
        high: the largest allowed, or None.
    """

    name: str
    label: str
    owner: str
    help: str
    kind: Literal["number", "whole", "yes-no", "choice", "text"]
    default: Any
    choices: tuple[Any, ...] = ()
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def word(self, choice: Any) -> str:
        """What a form calls one of the choices."""
        return self.words[self.choices.index(choice)] if choice in self.choices else str(choice)


@dataclass(frozen=True)
class TimeEstimate:
    """What a choice would take.

    Attributes:
        to_train: runs that would be trained.
        stored: runs that are there already and would not be.
        low: seconds it would take, twins and audits included, on a machine that does nothing else; None where nothing
            is to be trained.
        high: seconds with what else the machine does now.
        words: all of it in a sentence, with where the estimate is from.
        refusal: why the choice cannot be trained, or None.
        known: training and audits like these were measured on this machine.
    """

    to_train: int = 0
    stored: int = 0
    low: float | None = None
    high: float | None = None
    words: str = ""
    refusal: str | None = None
    known: bool = True


@dataclass(frozen=True, eq=False)
class TrainingForm:
    """A graph's form.

    Attributes:
        graph: the graph.
        spec: how to load it again.
        columns: the columns that were made attributes, or None for the layout's.
        summary: name and counts, for people.
        attributes: number of values by name, of the attributes that can be treated.
        sensitive: those of them that the data declare sensitive, in their order; else the first.
        missing: how many people have no value, by attribute, where there are any; in words, as under twelve are not told.
        backbones: label by name, those that suit the graph first.
        methods: label by name, in the order of the figures.
        summaries: what each method and each backbone does, in a line, by name.
        unknown: the policies for missing values in words, by name; the graph's own first.
        devices: words by name.
        places: where passes and audits may run, words by name.
        epochs: the default.
    """

    graph: AttributedGraph
    spec: str
    columns: tuple[str, ...] | None
    summary: str
    attributes: dict[str, int]
    sensitive: tuple[str, ...]
    missing: dict[str, str]
    backbones: dict[str, str]
    methods: dict[str, str]
    summaries: dict[str, str]
    unknown: dict[str, str]
    devices: dict[str, str]
    places: dict[str, str]
    epochs: int

    def reads_attributes(self, methods: Sequence[str]) -> bool:
        """Whether one of these methods needs an attribute."""
        return any(find("debias.methods", m).reads_attributes for m in methods)

    def uses_lambda(self, methods: Sequence[str]) -> bool:
        """Whether one of these methods has a penalty."""
        return any(find("debias.methods", m).uses_lambda for m in methods)

    def fields(self, backbone: str, methods: Sequence[str]) -> tuple[Field, ...]:
        """The settings that change something for this graph, backbone and these methods."""
        cls = find("backbones", backbone)
        steps = any(find("debias.methods", m).steps_follow for m in methods)
        left_out = {*_OWN, *unread(self.graph, cls, "shared", steps_follow=steps)}
        given = {"test_share": self.graph.defaults.test_share}
        own = self.graph.defaults.backbone_options.get(backbone, {})
        out = [_field(f, "Training", given) for f in fields(RunConfig) if f.metadata and f.name not in left_out]
        out += [_field(f, cls.label, own) for f in fields(cls) if f.metadata]
        asked: dict[str, list[tuple[str, Field]]] = {}
        for method in methods:
            known = find("debias.methods", method)
            # Of a method's options, those that change nothing on this kind of graph whatever the others are.
            silent = {"item_cells"} if not self.graph.bipartite else set()
            for f in fields(known):
                if f.metadata and f.name not in silent:
                    asked.setdefault(f.name, []).append((known.label, _field(f, known.label, {})))
        for labelled in asked.values():
            first = labelled[0][1]
            same = all(f.default == first.default for _, f in labelled)
            merged = replace(
                first,
                # A name may mean another thing to another method.
                label=" / ".join(dict.fromkeys(f.label for _, f in labelled)),
                help="; ".join(dict.fromkeys(f.help for _, f in labelled)),
                owner=", ".join(label for label, _ in labelled),
                default=first.default if same else None,
            )
            out.append(self._of_items(merged) if merged.name == "item_cells" else merged)
        return tuple(out)

    def _of_items(self, field: Field) -> Field:
        """What may form the groups of items, as a choice."""
        own = tuple(a.name for a in self.graph.attributes if a.side == "items")
        words = ("none", "by how popular they are", *(f"by {name}" for name in own))
        return replace(field, kind="choice", choices=("none", "popularity", *own), words=words)

    def settings(
        self,
        *,
        backbone: str,
        methods: Sequence[str],
        sensitive: Sequence[str] = (),
        jointly: bool = False,
        lams: str = "",
        seeds: str = "0",
        epochs: int = 0,
        unknown: str | None = None,
        device: str = "auto",
        options: Mapping[str, Any] | None = None,
        force: bool = False,
        projections: Sequence[str] = (),
        on: str = HERE,
    ) -> dict[str, Any]:
        """A job's settings from what was chosen.

        Args:
            backbone: a name.
            methods: names.
            sensitive: attributes to treat.
            jointly: treat them together in each run; else each in turn.
            lams: numbers with commas; empty takes each method's default.
            seeds: whole numbers with commas.
            epochs: passes over the edges; 0 takes the default.
            unknown: policy for missing values, or None for the graph's own.
            device: auto, cpu or cuda.
            options: other settings that differ from their defaults.
            force: train what is stored already.
            projections: pictures to make after training, as in `slow_projections`.
            on: where passes and audits run, one of `places`; by Ray each run is a pass of its own, so that they spread.

        Raises:
            ConfigError: a list that holds something else than numbers, or nothing, or a place that is not offered.
        """
        if on not in self.places:
            raise ConfigError(f"on = {on!r} is not offered here; allowed: {', '.join(self.places)}")
        if not methods:
            raise ConfigError("no method is chosen; choose at least one")
        own = {f.name: f.default for f in self.fields(backbone, methods)}
        changed = {k: v for k, v in (options or {}).items() if k in own and v is not None and v != own[k]}
        grid: dict[str, Any] = {
            "sensitive": "+".join(sensitive) if jointly else ",".join(sensitive),
            "methods": list(methods),
            "backbones": [backbone],
            "lams": _numbers("lambda", lams, float),
            "seeds": _numbers("seeds", seeds, int) or [0],
            "epochs": int(epochs or self.epochs),
            "unknown": unknown,
            "options": changed,
        }
        return {
            "data": self.spec,
            "attributes": list(self.columns) if self.columns else None,
            "grid": grid,
            "device": device,
            "force": force,
            "deterministic": False,
            "solo": on != HERE,
            "on": on,
            "projections": list(projections),
        }

    def plan(self, settings: Mapping[str, Any]) -> list[Planned]:
        """The runs of a job's settings; what cannot be trained is refused here."""
        if settings["device"] == "cuda" and not gpu():
            raise ConfigError("device = cuda, but this machine has no graphics card that can be used; choose another")
        return plan(self.graph, **settings["grid"])


def _field(spec: Any, owner: str, given: Mapping[str, Any]) -> Field:
    meta, default = spec.metadata, given.get(spec.name, None if spec.default is MISSING else spec.default)
    kind: Literal["number", "whole", "yes-no", "choice", "text"] = "text"
    if meta["choices"]:
        kind = "choice"
    elif isinstance(default, bool):
        kind = "yes-no"
    elif isinstance(default, int):
        kind = "whole"
    elif isinstance(default, float):
        kind = "number"
    label = meta["label"] or spec.name.replace("_", " ").capitalize()
    choices = tuple(meta["choices"] or ())
    words = meta["words"] or tuple(map(str, choices))
    return Field(spec.name, label, owner, meta["help"], kind, default, choices, words, meta["low"], meta["high"])


def _numbers(what: str, text: str, kind: type[float] | type[int]) -> list[Any]:
    out = []
    for part in text.replace(";", ",").split(","):
        if part.strip():
            try:
                out.append(kind(part))
            except ValueError:
                example = "0.1, 0.5, 1.9" if kind is float else "0, 1, 2"
                raise ConfigError(
                    f"{what}: {part.strip()!r} is not a {'whole ' if kind is int else ''}number; write {example}"
                ) from None
    return out


def training_form(spec: str, store: RunStore, attributes: Sequence[str] | None = None) -> TrainingForm:
    """The form for a graph, which is loaded for it.

    Args:
        spec: a sample's name, a folder, a file, or a dataset of PyG's, which is fetched when it is first named.
        store: below which datasets of PyG's are kept.
        attributes: the columns that are the attributes, or None for the layout's.

    Raises:
        GraphError: there is no such graph, or it cannot be read.
    """
    graph = load(
        spec, attributes=list(attributes) if attributes else None, store=store.root, tensors=store.tensors, keep=True
    )
    audited = [a for a in graph.audited if int((a.sizes > 0).sum()) > 1]
    suited = sorted(
        names("backbones"), key=lambda n: ((find("backbones", n).loss == "bpr") != graph.bipartite, n != "node2vec", n)
    )
    methods = sorted(names("debias.methods"), key=lambda n: find("debias.methods", n).position)
    people = (
        f"{graph.num_users:,} people, {graph.num_nodes - graph.num_users:,} items"
        if graph.num_users
        else f"{graph.num_nodes:,} people"
    )
    first = graph.defaults.unknown
    return TrainingForm(
        graph=graph,
        spec=lasting(spec),
        columns=tuple(attributes) if attributes else None,
        summary=f"{graph.name}: {people}, {graph.num_edges:,} edges",
        attributes={a.name: int((a.sizes > 0).sum()) for a in audited},
        sensitive=_sensitive(graph, [a.name for a in audited]),
        missing={a.name: _missing(graph, a) for a in audited if a.unknown.any()},
        backbones={n: find("backbones", n).label for n in suited},
        methods={n: find("debias.methods", n).label for n in methods},
        summaries={n: find("backbones", n).summary for n in suited}
        | {n: find("debias.methods", n).summary for n in methods},
        unknown={n: UNKNOWN[n] for n in (first, *(u for u in UNKNOWN if u != first))},
        devices={n: w for n, w in DEVICES.items() if n != "cuda" or gpu()},
        places=offered(),
        epochs=RunConfig.epochs,
    )


def _sensitive(graph: AttributedGraph, able: Sequence[str]) -> tuple[str, ...]:
    """The attributes to begin with."""
    return tuple(a for a in graph.defaults.sensitive if a in able) or tuple(able[:1])


def _missing(graph: AttributedGraph, attribute: Attribute) -> str:
    """How many people have no value, where that is told."""
    shown = told(graph, attribute)
    return SUPPRESSED if shown.small[-1] or shown.hides[-1] else f"{shown.size[-1]:,}"


def estimate(form: TrainingForm, settings: Mapping[str, Any], store: RunStore) -> TimeEstimate:
    """What a job would take, or why it cannot be trained."""
    try:
        planned = form.plan(settings)
    except ConfigError as error:
        return TimeEstimate(refusal=str(error))
    wanted = [] if settings["force"] else [p.run_id for p in planned]
    there = {run.id for run in store.list(audits=False, only=wanted) if usable(run)}
    todo = [p for p in planned if p.run_id not in there]
    stored = len(planned) - len(todo)
    already = f" {_count(stored, 'run')} of the {len(planned)} are stored already." if stored else ""
    if not todo:
        return TimeEstimate(
            0, stored, words=f"All {len(planned)} runs are stored already, so there is nothing to train."
        )
    trains, audits = expected(form.graph, [p.config for p in todo], settings["device"], store)
    low, high = trains.low + audits.low, trains.high + audits.high
    busy = (
        f"; the upper figure counts what else this machine does now (load {timing.load_average():.0f} on "
        f"{_count(cores(), 'core')})"
    )
    # Where audits are most of it, what is not known of them matters most.
    source = max((trains, audits), key=lambda s: (not s.known, s.high)).source
    return TimeEstimate(
        len(todo),
        stored,
        low,
        high,
        f"{_count(len(todo), 'run')} to train: {between(low, high)}, with their audits (about "
        f"{between(audits.low, audits.high)}) and {_COPIES}, by {source}{busy if timing.load_average() > cores() else ''}.{already}",
        known=trains.known and audits.known,
    )


def expected(graph: AttributedGraph, configs: Sequence[RunConfig], device: str, store: RunStore) -> tuple[Span, Span]:
    """How long the training of some runs takes, and how long their audits, on a machine like this one.

    Args:
        graph: their graph.
        configs: the runs.
        device: auto, cpu or cuda.
        store: whose rates count.
    """
    measured = store.timings()
    on = "cpu" if lane(device) == "cpu" else "gpu"
    trains: list[Span] = []
    for backbone in dict.fromkeys(c.backbone for c in configs):
        mine = [c for c in configs if c.backbone == backbone]
        work = sum(timing.training_work(c, graph.num_nodes, graph.num_edges) for c in mine)
        span = timing.span(measured, "train", work, graph=graph.fingerprint, kind=timing.kind(on, mine))
        steps = max(c.epochs + c.warm_epochs for c in mine) * timing.STEP
        trains.append(replace(span, low=span.low + steps / 2, high=span.high + steps))
    work = sum(timing.audit_work(c, graph) for c in configs)
    if not any(r.what == "audit" and r.graph == graph.fingerprint for r in measured):
        # The first audit of a graph attacks random embeddings too.
        work += max(timing.audit_work(c, graph) for c in configs)
    return _sum(trains), timing.span(measured, "audit", work, graph=graph.fingerprint, kind="")


def _sum(spans: Sequence[Span]) -> Span:
    worst = max(spans, key=lambda s: (not s.known, s.high))
    return replace(worst, low=sum(s.low for s in spans), high=sum(s.high for s in spans))


def expected_again(run: StoredRun, store: RunStore) -> tuple[Span, Span | None]:
    """How long training a stored run's settings once more takes, and its audit.

    None where no audit of its graph was timed.
    """
    data, config = run.dataset, RunConfig.from_json(run.config)
    nodes, edges, graph = data["num_nodes"], data["num_edges"], data["fingerprint"]
    measured = store.timings()
    kind = timing.kind(run.device or "cpu", [config])
    trains = timing.span(measured, "train", timing.training_work(config, nodes, edges), graph=graph, kind=kind)
    audits = [r.work for r in measured if (r.what, r.graph, r.kind) == ("audit", graph, "")]
    if not audits:
        return trains, None
    return trains, timing.span(measured, "audit", max(audits), graph=graph, kind="")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def enqueue(form: TrainingForm, settings: Mapping[str, Any], store: RunStore) -> int:
    """Puts a job into the queue and returns its number at once; what waits or is being trained is not asked for again.

    Raises:
        ConfigError: the settings cannot be trained.
        StoreError: the store cannot be written.
    """
    form.plan(settings)
    return Queue(store).ask(settings)
