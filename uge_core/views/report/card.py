"""A model card of one embedding, as Markdown: what it is for, what it was made of, what it gives away, how to check that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uge_core.errors import ConfigError, escaped
from uge_core.runs.names import config_words
from uge_core.views.points import Fold
from uge_core.views.report import appendix, summary
from uge_core.views.report.wording import method_name, method_words
from uge_core.views.verdicts import judged
from uge_core.views.words import plain_text

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore
    from uge_core.runs.stored_run import StoredRun
    from uge_core.views.report import Sheet


def model_card(
    runs: Sequence[StoredRun], store: RunStore, run_id: str, *, before: str = "", sheet: Sheet, data: str = ""
) -> str:
    """The card of a run's exported embedding, with what others of the same method and settings say of its seeds.

    Args:
        runs: the run, its other seeds, and one that it is compared with; all audited.
        store: where they lie.
        run_id: the run whose embedding it is.
        before: a run's id of what it is compared with; "" takes an untreated one.
        sheet: what was typed; purpose, source and licence are taken of it.
        data: how the data are named in commands where everybody has them.

    Raises:
        ConfigError: the run is not audited, or what it is compared with is of another graph.
    """
    rows = summary.report_rows(runs)
    first, now = summary.compared(rows, before, run_id)
    run = next(r for r in now.runs if r.id == run_id)
    record = run.audit
    if record is None:
        raise ConfigError(
            f"run {run.id} has no audit, so nothing is known of what it gives away; run uge audit {run.id}"
        )
    kept = {r.id: r.audit or {} for row in rows for r in row.runs}
    told = summary.summary(rows, kept, store, sheet, before=first.key if first else "", after=run_id, data=data)
    return "\n".join(_lines(run, record, first, now, told, sheet)) + "\n"


def _lines(
    run: StoredRun, record: Mapping[str, Any], first: Fold | None, now: Fold, told: summary.Summary, sheet: Sheet
) -> Iterator[str]:
    yield f"# Model card: {_plain(now.label)}, run {run.id}"
    yield ""
    whose = "Its data are made up: nobody in it is real." if told.made_up else "It is personal data of those in it."
    yield f"An embedding of people: a vector of numbers for each. {whose}"
    yield ""
    yield "## Intended use"
    yield ""
    yield _plain(sheet.purpose) or "Not said. Whoever passes this embedding on fills it in."
    yield ""
    yield "Not for: decisions about a person, or any use that its audit does not cover (see Limits)."
    yield ""
    yield "## Data"
    yield ""
    for name, text in told.facts:
        yield f"- {name}: {_plain(text)}"
    yield ""
    yield "## Method"
    yield ""
    config = record["config"]
    treated = ", ".join(config["sensitive"]) or "no attribute"
    lam = "" if config["lambda"] is None else f", λ {config['lambda']:g}"
    yield f"- Method: {_plain(method_name(config['method']))} ({_code(config['method'])}){lam}; treats {_plain(treated)}"
    for text in method_words([now]):
        yield f"- {_plain(text)}"
    yield f"- Settings: {_plain(config_words(config, 'backbone', 'dim', 'epochs', 'split'))}"
    seeds = ", ".join(str(r.config.get("seed")) for r in now.runs)
    yield f"- Seed: {config.get('seed')}; {'measured over seeds ' + seeds if len(now.runs) > 1 else 'no other seed was measured'}"
    yield f"- Config: {_code(json.dumps(config, sort_keys=True, ensure_ascii=True))}"
    yield ""
    yield "## What it gives away"
    yield ""
    yield (
        "AUC of the strongest attacker: of two people with different values, how often it picks the right one. 0.5 is a "
        "coin, lower is better."
    )
    yield ""
    cards = judged(None, first, now)
    if cards:
        yield "| attribute | verdict | this run, AUC | 95 % interval | n | over seeds | 95 % interval |" + (
            " before, AUC | 95 % interval |" if first else ""
        )
        yield "|---|---|---|---|---|---|---|" + ("---|---|" if first else "")
    else:
        yield f"{_plain(told.lead.headline)}. {_plain(told.lead.sentence)}"
    alone = {c.attribute: c.now for c in judged(None, None, Fold(run.id, (run,)))}
    for card in cards:
        cells = [_plain(card.attribute), told.told[card.attribute].badge]
        sides = [alone.get(card.attribute), card.now, *([card.before] if first else [])]
        for i, side in enumerate(sides):
            auc = side.auc if side else None
            shown = appendix.figure(auc)
            cells += [shown.value, shown.interval] + ([shown.n.removeprefix("n ")] if i == 0 else [])
        yield "| " + " | ".join(cells) + " |"
    yield ""
    for text in told.sure:
        yield f"- {_plain(text)}"
    yield ""
    yield "## What that cost"
    yield ""
    if not cards:
        yield "Not told: without an attribute there is nothing that link quality was given up for."
    for card in cards:
        if cost := told.told[card.attribute].cost:
            yield f"- {_plain(card.attribute)}: {cost}"
        elif card.now.quality:
            shown = appendix.figure(card.now.quality)
            yield f"- {_plain(card.attribute)}: link quality {shown.value} ({shown.interval}), {shown.n}, {shown.floor}"
    yield ""
    yield "## Limits"
    yield ""
    yield "Not tested:"
    yield ""
    for text in told.untested:
        yield f"- {_plain(text)}"
    yield ""
    yield "It must not be concluded:"
    yield ""
    for text in told.never:
        yield f"- {_plain(text)}"
    yield ""
    yield "## Hashes"
    yield ""
    yield f"- SHA-256 of `embedding.npy`, the stored vectors: `{run.sums.get('embedding.npy', 'not kept')}`"
    yield f"- SHA-256 of the audit's record: `{record['sha256']}`"
    yield f"- SHA-256 of the config: `{_sha256_of_config(config)}`"
    yield f"- Fingerprint of the data: {_code(record['dataset']['fingerprint'])}"
    yield f"- Version {record.get('audit_version', 1)} of the audit"
    yield ""
    yield f"{_code(told.commands[0][0])} trains and audits it again, with the JSON of its report or of `uge audit`."


def _sha256_of_config(config: object) -> str:
    from uge_core.views.report.recipe import sha256

    return sha256(config)


def _plain(text: str) -> str:
    """A text in one line that is no formatting, as a name with a line's end would break a table or a list."""
    return plain_text(escaped(" ".join(text.split()))).replace("&", "\\&")


def _code(text: str) -> str:
    """A text as code, between more backticks than follow one another in it."""
    line = escaped(text)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest else f"{fence}{line}{fence}"
