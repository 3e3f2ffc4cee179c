"""`uge reproduce`: the paper's tables and figures, trained again and set beside the published numbers."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from uge_core.cli.arguments import (
    DONE,
    Parsers,
    add_command,
    data_arguments,
    device_argument,
    nonempty,
    text_list,
    whole_number_list,
)
from uge_core.cli.loading import load_graph
from uge_core.cli.printing import print_json, remark, text_table
from uge_core.errors import ConfigError, UgeError


def add(parsers: Parsers) -> None:
    """Declares `reproduce`."""
    one = add_command(
        parsers,
        "reproduce",
        run,
        help="train the paper's tables and figures again, beside what was published",
        description="Trains a recipe, a table or a figure of the paper, and prints each published number beside ours "
        "with a verdict, and what becomes of the paper's claims: as the paper measured, and by the strongest attacker "
        "on people whose values training did not see. Without DATA what is measured already is printed; without "
        "RECIPE the recipes are listed. `all` takes for DATA a folder with the graphs below their names, as "
        "FOLDER/pokec-n, and for --rows a folder of files, as FOLDER/pokec-n.jsonl.",
    )
    one.add_argument("recipe", nargs="?", type=nonempty, metavar="RECIPE", help="as table-pokec-n, or all")
    data_arguments(one, required=False)
    one.add_argument(
        "--rows",
        type=nonempty,
        metavar="FILE",
        help="JSON lines: what is measured is added, what is there is not redone; without DATA, what is printed "
        "(default: the rows that come with the package)",
    )
    one.add_argument("--seeds", type=whole_number_list, default=[], metavar="S,..", help="default: the recipe's")
    one.add_argument("--backbone", type=text_list, default=[], metavar="B,..", help="default: the recipe's")
    device_argument(one)
    one.add_argument("--figure", type=nonempty, metavar="FILE", help="draw it, to FILE.html, FILE.png or FILE.svg")
    one.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    one.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the recipes, or one of them."""
    from uge_core.runs.recipe import recipe
    from uge_core.runs.reproduce import check_backbones
    from uge_core.views.figures.files import check_figure_file, write_figure
    from uge_core.views.figures.paper import paper_figure, placed_figure
    from uge_core.views.paper import HEAD, PaperTable

    if args.recipe is None:
        return _list(args)
    if args.recipe == "all":
        return _all(args)
    asked = recipe(args.recipe)
    check_backbones(asked, args.backbone)
    asked = replace(asked, backbones=tuple(args.backbone) or asked.backbones, seeds=tuple(args.seeds) or asked.seeds)
    figure = Path(args.figure) if args.figure else None
    if figure is not None:
        check_figure_file(figure)
        if not asked.panels:
            raise ConfigError(f"{asked.name} is a table; figures are those of fig-... and ablation-...")
        if ("projection",) in asked.panels and args.data is None:
            raise ConfigError(f"DATA is missing, the graph whose embeddings {asked.name} draws")
    table = PaperTable(asked, _rows(args, asked))
    if args.json:
        cells, claims = ([asdict(one) for one in some] for some in (table.cells, table.claims))
        print_json({"recipe": asked.name, "cells": cells, "claims": claims, "rows": list(table.rows)})
    else:
        print(f"{asked.title}\n{asked.source}\n\n{table.measured_words}\n")
        if asked.left_open:
            print("What the paper leaves open, and what was taken:")
            print("".join(f"- {line}\n" for line in asked.left_open))
        print(table.markdown() if args.markdown else text_table(list(HEAD), [cell.line for cell in table.cells]))
        print(
            "\n" + "\n".join(f"{'  ' if line.startswith(' ') else ''}- {line.strip()}" for line in table.claim_lines())
        )
    if figure is not None:
        drawn = paper_figure(table)
        if drawn is None:
            from uge_core.explore.projection.paper import place

            graph = load_graph(args.data, args.attributes, args.store)[0]
            drawn = placed_figure(asked, place(asked, graph, device=args.device))
        write_figure(drawn, figure)
    return DONE


def _rows(args: argparse.Namespace, asked: Any) -> list[dict[str, Any]]:
    from uge_core.runs.kept_rows import read_rows
    from uge_core.runs.recipe import SCHEMA, shipped_rows
    from uge_core.runs.reproduce import reproduce

    rows = Path(args.rows) if args.rows else None
    if args.data is None:
        if rows is not None and not rows.exists():
            raise ConfigError(f"{rows}: no file there")
        return shipped_rows(asked.data) if rows is None else read_rows(rows, SCHEMA)[0]
    graph = load_graph(args.data, args.attributes, args.store)[0]
    return reproduce(
        asked, graph, rows=rows, seeds=args.seeds, backbones=args.backbone, device=args.device, on_note=remark
    )


def _all(args: argparse.Namespace) -> int:
    """Trains every recipe whose graph is there, and says which is not."""
    from uge_core.runs.recipe import recipe, recipe_names
    from uge_core.runs.reproduce import reproduce

    if args.data is None or args.rows is None or args.figure:
        raise ConfigError(
            "all needs DATA, a folder with the graphs below their names, and --rows, a folder of files; --figure draws "
            "one recipe"
        )
    kept = Path(args.rows)
    kept.mkdir(parents=True, exist_ok=True)
    graphs: dict[str, Any] = {}
    for asked in map(recipe, recipe_names()):
        try:
            if asked.data not in graphs:
                graphs[asked.data] = load_graph(str(Path(args.data) / asked.data), args.attributes, args.store)[0]
            chosen = [b for b in args.backbone if b in asked.backbones]
            if args.backbone and not chosen:
                remark(f"{asked.name} is left out: it has none of these backbones")
                continue
            rows, graph = kept / f"{asked.data}.jsonl", graphs[asked.data]
            remark(f"{asked.name}: {asked.title}")
            reproduce(asked, graph, rows=rows, seeds=args.seeds, backbones=chosen, device=args.device, on_note=remark)
        except UgeError as error:
            remark(f"{asked.name} is left out: {error}")
    return _list(args, kept)


def _list(args: argparse.Namespace, kept: Path | None = None) -> int:
    from uge_core.runs.kept_rows import read_rows
    from uge_core.runs.recipe import SCHEMA, recipe, recipe_names, shipped_rows
    from uge_core.views.paper import PaperTable

    tables = [
        PaperTable(r, read_rows(kept / f"{r.data}.jsonl", SCHEMA)[0] if kept else shipped_rows(r.data))
        for r in map(recipe, recipe_names())
    ]
    lines = [
        [t.recipe.name, t.recipe.data, t.recipe.title, f"{len(t.cells) - t.missing} of {len(t.cells)}"] for t in tables
    ]
    if args.json:
        print_json([dict(zip(("recipe", "data", "title", "measured"), line, strict=True)) for line in lines])
    else:
        print(text_table(["recipe", "data", "title", "figures measured"], lines))
    return DONE
