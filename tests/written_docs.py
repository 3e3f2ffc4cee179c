"""The parts of docs/ that follow from the code: docs/methods.md and the tables of docs/training.md and docs/data.md.

``make docs`` writes them; `test_docs` says where one is out of date.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from real_layouts import REALS

from uge_core.datasets.layouts import all_layouts
from uge_core.registry import find, names
from uge_core.views import catalogue

DOCS = Path(__file__).resolve().parents[1] / "docs"


def first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring in one line, without its full stop."""
    return " ".join((text or "").split("\n\n", 1)[0].split()).rstrip(".")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def backbones() -> str:
    plugins = [find("backbones", name) for name in names("backbones")]
    rows = ((f"[`{p.name}`](methods.md#{p.name})", p.label, p.citation, p.loss) for p in plugins)
    return table(("name", "model", "by", "loss"), rows)


def methods() -> str:
    """Each in the sentence that its file begins with: the label, a colon, what it does."""
    plugins = sorted((find("debias.methods", name) for name in names("debias.methods")), key=lambda p: p.position)
    rows = []
    for p in plugins:
        _, _, what = first_sentence(importlib.import_module(p.__module__).__doc__).partition(": ")
        lam = f"{p.default_lam:g}" if p.uses_lambda else ""
        rows.append((f"[`{p.name}`](methods.md#{p.name})", p.label, what, lam))
    return table(("name", "method", "what it does", "lambda"), rows)


def attackers() -> str:
    plugins = [find("audit.attackers", name) for name in names("audit.attackers")]
    return table(("name", "attacker", "how"), ((f"`{p.name}`", p.label, first_sentence(p.__doc__)) for p in plugins))


def layouts() -> str:
    return table(("layout", "files"), ((f"`{layout.name}`", layout.summary) for layout in all_layouts()))


def files() -> str:
    """What happens to files as programs and collections write them."""
    said = {"read": "read", "described": "read after `uge data describe FOLDER --write`"}
    rows = ((r.source, r.form, said.get(r.happens) or f"refused: {r.words}") for r in REALS)
    return table(("from", "files", "what happens"), rows)


TABLES = {"training.md": (backbones, methods, attackers), "data.md": (layouts, files)}


def written() -> dict[Path, str]:
    """What each file should hold."""
    pages = {DOCS / "methods.md": catalogue.markdown()}
    for name, makers in TABLES.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        for make in makers:
            block = re.compile(rf"(<!-- {make.__name__}: .*? -->\n).*?(<!-- end -->)", re.DOTALL)
            assert len(block.findall(text)) == 1, f"{name} has no place for {make.__name__}"
            rows = make()
            text = block.sub(lambda m, rows=rows: f"{m[1]}\n{rows}\n\n{m[2]}", text)
        pages[DOCS / name] = text
    return pages


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
