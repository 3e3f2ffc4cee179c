"""How a report calls embeddings, and what their methods do, for people who know neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from uge_core import registry
from uge_core.debias.base import Method
from uge_core.runs.names import EXTERNAL, method_class
from uge_core.views.points import Fold

_OURS = " (ours)"  # in labels of methods, where no sentence has room to say it
_SPACES = re.compile(r"[^\S\u00a0]+")
_TOGETHER = re.compile(r"(?<=λ) (?=\S)|(?<=\d) (?=seeds$)| (?=· )")


def cut(text: str, most: int) -> str:
    """The text's beginning where it is long, in whole words where there are some."""
    text = _SPACES.sub(" ", text).strip()
    if len(text) <= most:
        return text
    whole = text[: most - 1].rpartition(" ")[0]
    return (whole if len(whole) > most / 2 else text[: most - 1]) + "…"


def short(fold: Fold) -> Fold:
    """The embedding under the name that reports give it."""
    return replace(fold, label=short_label(fold.label, str(fold.runs[0].config["method"])))


def short_label(label: str, method: str) -> str:
    """A label as reports print it: whose the method is stands in a sentence, λ and seeds keep their numbers, and no line begins with a dot."""
    whole = method_class(method).label
    if whole.endswith(_OURS) and label.startswith(whole):
        label = whole.removesuffix(_OURS) + label.removeprefix(whole)
    return _TOGETHER.sub("\u00a0", label)


def method_name(name: str) -> str:
    """The method's label without whose it is."""
    return method_class(name).label.removesuffix(_OURS)


def of_this_package(rows: Sequence[Fold]) -> str:
    """Which of the methods are this package's own, a sentence; "" where none is."""
    classes = dict.fromkeys(method_class(str(row.runs[0].config["method"])) for row in rows)
    ours = [c.label.removesuffix(_OURS) for c in classes if c.label.endswith(_OURS)]
    if not ours:
        return ""
    return f"{listed(ours)} {'is a method' if len(ours) == 1 else 'are methods'} of this package."


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence, the last after "and"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def method_words(rows: Sequence[Fold]) -> Iterator[str]:
    """What the methods of the embeddings do, a sentence or two each; λ where one of them has it."""
    names = list(dict.fromkeys(str(row.runs[0].config["method"]) for row in rows))
    for name in names:
        method = method_class(name)
        if name == "none" and len(names) > 1:
            continue  # its label says it
        if name == EXTERNAL:
            yield "The embedding was trained elsewhere; how is not known here."
        elif method.summary:
            source = "a method of this package" if method.label.endswith(_OURS) else method.citation
            whose = f" ({source})" if source and name != "none" else ""
            yield f"{method_name(name)}{whose}: {_lower(method.summary)}"
            yield from (
                f"{method_name(n)}: {_lower(method_class(n).summary)}" for n in _builds_on(method) if n not in names
            )
    if any(row.runs[0].config.get("lambda") is not None for row in rows):
        yield "λ is how much a method's penalty counts: 0 not at all; more is meant to hide more."


def _builds_on(method: type[Method]) -> list[str]:
    """The one other method that a summary names without saying what it does."""
    others = [n for n in registry.names("debias.methods") if n not in ("none", method.name)]
    named = [n for n in others if re.search(rf"{re.escape(method_name(n))}\b", method.summary)]
    return named if len(named) == 1 else []


def _lower(sentence: str) -> str:
    """A sentence that goes on after a colon; names in capitals stay."""
    first = sentence.partition(" ")[0]
    return sentence if first.upper() == first and len(first) > 1 else sentence[:1].lower() + sentence[1:]
