"""Rows of a table that are no node and no edge: a header again, totals, a database's last line, notes, units.

What is certain is left out and said: a row that repeats the header, Qualtrics' rows under it, ``(60 rows affected)``.
What is likely is refused with its line, as nobody may become a person by mistake. A row is told by what it holds where
the other rows hold something else, so that ids of several kinds stay: a text among numbers is no fault of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.datasets.beginnings import COMMENTS, KNOWN, written_as_number
from uge_core.datasets.numeric import as_numbers
from uge_core.errors import GraphError
from uge_core.graph.graph import Message

if TYPE_CHECKING:
    from uge_core.datasets.tables import Table

_SHOWN = 3
_SHORTEST_NAME = 2
_TOP = 4  # rows under the header that may be no data
_BOTTOM = 12  # rows at the end that may be no data, as statistics of a column take eight
_LOOKED_AT = 50  # columns, as rows of thousands take long
_SAMPLE = 200
_FEWEST = 3  # other rows by which a row is called unlike
_FEWEST_IDS = 10
_ODD = 0.05  # share of ids that may be odd
_MOST_ODD = 5
_SURVEY_TITLES = {
    "responseid": "response id",
    "startdate": "start date",
    "enddate": "end date",
    "recordeddate": "recorded date",
}
"""Columns of Qualtrics, and what its second line says under them."""
_TOTALS = frozenset(
    """
    total|totals|grand total|subtotal|sub-total|sum|gesamt|gesamtergebnis|gesamtsumme|insgesamt|summe|ergebnis|
    zwischensumme|teilergebnis|total général|somme|sous-total|suma|total general|total geral|subtotal geral|soma|
    totale|somma|totaal|eindtotaal|summa|totalt|yhteensä|razem|celkem|összesen|toplam|genel toplam|итого|всего|合計|总计|
    合计|總計|합계
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
_STATISTICS = frozenset(
    """
    mean|average|avg|median|mode|sd|std|std dev|std. dev|std.dev|stdev|standard deviation|min|max|minimum|maximum|n|
    count|range|variance|var|se|25%|50%|75%|mittelwert|durchschnitt|mittel|standardabweichung|stdabw|std.-abw|anzahl|
    varianz|moyenne|médiane|écart-type|ecart-type|écart type|nombre|effectif|effectifs|promedio|mediana|media|
    desviación estándar|desviación típica|desvio padrão|cuenta|recuento|varianza|deviazione standard|conteggio|
    gemiddelde|mediaan|aantal|medelvärde|antal|gennemsnit|gjennomsnitt|keskiarvo|średnia|průměr|среднее|平均|均值|평균
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
"""Some of these are names of people too."""
_LIKE_TOTALS = re.compile(r"(?:grand |sub-?|sous-)?totale?s?\b.*|.* (?:total|gesamt|ergebnis|summe)")
_FOOTER = re.compile(
    r"\(\s*\d[\d., ]*\s(?:rows?|records?|zeilen?|lignes?|filas?|righe|riga|linhas?|rijen|rader)(?: \w+)?\s*\)"
    r"|\d[\d., ]* (?:rows?|records?) (?:in set|selected|affected|returned|fetched|retrieved)\b.*"
    r"|\[\d+ rows x \d+ columns\]",
    re.IGNORECASE,
)
"""What databases and pandas write below a table."""
_NOTE = re.compile(
    r"[*†‡(\[©].*|.*[:\uff1a]\s.*|\S+(?:\s+\S+){4,}|(?:source|note|quelle|stand|anmerkung|fuente|nota)s?\b.*",
    re.IGNORECASE,
)


def without_stray_rows(table: Table) -> Table:
    """A table without the rows that certainly are none, of which its messages tell.

    Raises:
        GraphError: a row is probably none, such as one of totals or units, or a comment.
    """
    file, frame, headless = table.file, table.frame, table.headless
    messages: list[Message] = []
    if not headless:
        frame, said = _without_survey_rows(file, frame)
        messages += said
    few = frame.iloc[:, :_LOOKED_AT]
    first = few.iloc[:, 0]
    if len(few) and first.dtype.kind not in "iufb" and first.str.isdigit().all():
        # A number in front of every row is no header, no word for totals, no note and no comment.
        if not headless:
            _refuse_top(file, few)
        return replace(table, frame=frame, messages=(*table.messages, *messages))
    if not headless:
        again = _repeats_header(frame)
        if again.any() and not again.all():
            what = "that repeat the header" if again.sum() > 1 else "that repeats the header"
            messages.append(_left_out(file, frame, again, what, "repeated-header"))
            frame = frame.loc[~again]
            few = frame.iloc[:, :_LOOKED_AT]
    footer = _is_footer(few)
    if footer.any() and not footer.all():
        messages.append(_left_out(file, few, footer, "with which a database ends its output", "footer-rows"))
        frame, few = frame.loc[~footer], few.loc[~footer]
    _refuse_comments(file, few)
    if not headless:
        _refuse_top(file, few)
    _refuse_totals(file, few)
    _refuse_notes(file, few)
    return replace(table, frame=frame, messages=(*table.messages, *messages))


def refuse_odd_ids(nodes: Table, column: str, named: Collection[str] | pd.Series) -> None:
    """Refuses the few rows whose id is of another kind than nearly all others, and that no edge names.

    Args:
        nodes: one row per node.
        column: the ids.
        named: the ids that edges name, which are nodes whatever they look like.

    Raises:
        GraphError: there are such rows.
    """
    ids = nodes.frame[column]
    odd = _odd(ids)
    if odd.any():
        odd = odd & ~ids.isin(named).to_numpy()
    if odd.any():
        one = odd.sum() == 1
        raise GraphError(
            f"{nodes.file}: {_counted(int(odd.sum()))} with {'an id' if one else 'ids'} of another kind than the others in "
            f"column {column!r}, first: {_lines(nodes.frame, odd)}, and no edge names {'it' if one else 'them'}; remove "
            f"{'it' if one else 'them'} if {'it is no node' if one else 'they are no nodes'} (a total, a note), else write "
            f"{'its id' if one else 'their ids'} like the others"
        )


def _odd(ids: pd.Series) -> npt.NDArray[np.bool_]:
    """The few ids of another kind than nearly all: no numbers among numbers, and the other way round."""
    none = np.zeros(len(ids), dtype=bool)
    cells = ids.dropna()
    if len(cells) < _FEWEST_IDS or ids.dtype.kind in "iuf":
        return none
    some = cells.iloc[:: max(len(cells) // _SAMPLE, 1)].astype(str)
    numbers, digits = some.map(written_as_number), some.str.contains(r"\d", regex=True)
    if numbers.mean() > 1 - 2 * _ODD:
        odd = ids.notna().to_numpy() & np.isnan(as_numbers(ids))
    elif not numbers.any() and digits.mean() > 1 - 2 * _ODD:
        odd = ~ids.fillna("0").astype(str).str.contains(r"\d", regex=True).to_numpy(dtype=bool)
    elif numbers.mean() < 2 * _ODD:
        odd = ~np.isnan(as_numbers(ids))
    else:
        return none
    return odd if odd.sum() <= min(_MOST_ODD, max(_ODD * len(ids), 1)) else none


def _without_survey_rows(file: str, frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[Message, ...]]:
    """A table without the two rows that Qualtrics writes under the header: question texts and import ids."""
    top = frame.head(_SHOWN)
    ids = [all(str(c).startswith('{"ImportId"') for c in row if not pd.isna(c)) for row in top.itertuples(index=False)]
    titles = [
        str(cell).strip().lower() == _SURVEY_TITLES[name.lower()]
        for name, cell in zip(map(str, frame.columns), top.iloc[0], strict=True)
        if name.lower() in _SURVEY_TITLES
    ]
    # Other tables have at most an empty row here.
    rows = max((i + 1 for i, yes in enumerate(ids) if yes and top.iloc[i].notna().any()), default=0)
    rows = rows or int(bool(titles) and all(titles))
    if not rows:
        return frame, ()
    lines = ", ".join(map(str, frame.index[:rows]))
    text = f"{file}: {_counted(rows)} under the header (line {lines}) left out: question texts and import ids of "
    text += "Qualtrics, no people"
    shown = tuple(str(row[0])[:40] for row in top.iloc[:rows].itertuples(index=False))
    remedy = "nothing to do; remove these rows to be rid of this warning"
    return frame.iloc[rows:], (Message("warning", "survey-rows", text, rows, shown, remedy),)


def _left_out(file: str, frame: pd.DataFrame, rows: npt.NDArray[np.bool_], what: str, code: str) -> Message:
    """The warning about rows that are none."""
    number = int(rows.sum())
    text = f"{file}: {_counted(number)} {what} left out, first: {_lines(frame, rows)}"
    remedy = "nothing to do; remove these rows to be rid of this warning"
    return Message("warning", code, text, number, (), remedy)


def _repeats_header(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which rows hold the header's names."""
    names = [str(n).strip().lower() for n in frame.columns]
    at = next((i for i, n in enumerate(names) if n), None)
    again = np.zeros(len(frame), dtype=bool)
    if at is None or all(len(n) < _SHORTEST_NAME or written_as_number(n) for n in names):
        return again  # letters may be ids
    written = str(frame.columns[at])
    likely = frame.iloc[:, at].isin({written, *(f(written) for f in (str.lower, str.upper, str.title))}).to_numpy()
    for row in np.flatnonzero(likely):
        again[row] = [_text(c).lower() for c in frame.iloc[row]] == names
    if again.sum() < likely.sum():
        again[:] = False  # the name is a value of the column
    return again


def _is_footer(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which of the last rows are the line in which a database counts its rows."""
    rows = np.zeros(len(frame), dtype=bool)
    for row in range(max(len(frame) - _SHOWN, 0), len(frame)):
        cells = _given(frame, row)
        rows[row] = len(cells) == 1 and _FOOTER.fullmatch(cells[0]) is not None
    return rows


def _refuse_comments(file: str, frame: pd.DataFrame) -> None:
    """Refuses rows that begin like a comment where others do not, unless an id may begin so."""
    first = frame.iloc[:, 0]
    if first.dtype.kind in "iufb":
        return
    marked = first.str.startswith(COMMENTS, na=False).to_numpy(dtype=bool)
    if not marked.any() or marked.sum() * 2 > len(frame):
        return
    others = _sample(first[~marked])
    numbers = bool(others) and all(map(written_as_number, others))
    marked = marked & ~first.duplicated(keep=False).to_numpy()  # what stands again is a value
    for row in np.flatnonzero(marked)[:_SAMPLE]:
        cell = _text(first.iloc[row])
        bare = re.sub(r"^(?:#|%|//)+", "", cell)
        alone = frame.shape[1] > 1 and len(_given(frame, row)) == 1
        if numbers or alone or not bare or bare[0].isspace():
            raise GraphError(
                f"{file}: {_lines(frame, np.arange(len(frame)) == row)} begins like a comment, but comments stand above "
                "the header alone; remove it"
            )


def _refuse_top(file: str, frame: pd.DataFrame) -> None:
    """Refuses rows under the header that are unlike all others: units, question texts, or the header below a title."""
    if frame.shape[1] < 2 or len(frame) <= _FEWEST:
        return
    top = min(_TOP, len(frame) - _FEWEST)
    titled = not {str(n).strip().lower() for n in frame.columns} & KNOWN
    first = _sample(frame.iloc[top:, 0])
    run = bool(first) and all(map(written_as_number, first))
    strange = []
    for row in range(top):
        cells = [_text(c) for c in frame.iloc[row]]
        given = [c for c in cells if c]
        run = run and _kind(cells[0], first) == "text"
        asks = len(given) > 1 and sum(c.endswith(("?", "\uff1f")) for c in given) * 2 > len(given)
        named = titled and len(given) > 1 and any(c.lower() in KNOWN for c in given)
        if not (run or asks or named):
            continue
        kinds = {_kind(c, _sample(frame.iloc[top:, i])) for i, c in enumerate(cells) if i}
        # A first cell that says nothing may be the missing number of a row as any other.
        unlike = {"text"} if not any(map(str.isalnum, cells[0])) else {"text", "new"}
        if "like" not in kinds and (asks or named or unlike & kinds):
            strange.append(row)
    if strange:
        rows = np.isin(np.arange(len(frame)), strange)
        raise GraphError(
            f"{file}: {_lines(frame, rows)} {'is' if len(strange) == 1 else 'are'} unlike the rows below; remove "
            f"{'it' if len(strange) == 1 else 'them'} if {'it holds' if len(strange) == 1 else 'they hold'} units, question "
            "texts or a note, or the lines above if the names of the columns stand here"
        )


def _kind(cell: str, others: Sequence[str]) -> str:
    """How a cell stands to the others of its column.

    Returns:
        text (among numbers), new (among values that repeat), like, or nothing where it cannot be told.
    """
    if not cell or len(others) < _FEWEST:
        return ""
    numbers = sum(map(written_as_number, others))
    if written_as_number(cell):
        return "like" if numbers else "new"
    if cell in others:
        return "like"
    if numbers == len(others):
        return "text"
    return "new" if len(set(others)) * 2 <= len(others) else ""


def _refuse_totals(file: str, frame: pd.DataFrame) -> None:
    """Refuses rows of sums, means and counts."""
    if frame.shape[1] < 2 or len(frame) <= _FEWEST:
        return
    last = range(max(len(frame) - _BOTTOM, 1), len(frame))
    rows = [row for row in last if _is_total(frame, row)]
    first = frame.iloc[:, 0]
    if first.dtype.kind not in "iuf":
        words = {form(w) for w in (*_TOTALS, *_STATISTICS) for form in (str, str.upper, str.title, str.capitalize)}
        likely = np.flatnonzero(first.isin(words).to_numpy())
        if len(likely) <= len(frame) // 2:
            rows += [int(r) for r in likely if r < last[0] and _is_total(frame, int(r))]
    if rows:
        wrong = np.isin(np.arange(len(frame)), rows)
        one = wrong.sum() == 1
        raise GraphError(
            f"{file}: {_counted(int(wrong.sum()))} of totals, first: {_lines(frame, wrong)}; remove "
            f"{'it, or give it another id if it is' if one else 'them, or give them other ids if they are'} "
            f"{'a node' if one else 'nodes'}"
        )


def _is_total(frame: pd.DataFrame, row: int) -> bool:
    """Whether a row begins with a word for totals, and holds what such a row does."""
    given = _given(frame, row)
    if not given:
        return False
    word = given[0].strip(" :.*=-").casefold()
    total = word in _TOTALS
    if not (total or word in _STATISTICS or _LIKE_TOTALS.fullmatch(word)):
        return False
    rest = frame.drop(index=frame.index[row])
    cells = [_text(c) for c in frame.iloc[row]]
    others = [_sample(rest.iloc[:, i]) for i in range(frame.shape[1])]
    at = cells.index(given[0])
    if _among_codes(given[0], others[at]):
        return True
    if row < len(frame) - _BOTTOM:
        return False
    if any(
        written_as_number(c) and o and not any(map(written_as_number, o)) for c, o in zip(cells, others, strict=True)
    ):
        return True  # a number among texts
    if not total:
        return False
    if len(given) == 1:
        return True
    for i, cell in enumerate(cells):
        if i != at and written_as_number(cell):
            above = pd.to_numeric(frame.iloc[:row, i], errors="coerce").dropna().to_numpy()
            counts = () if (np.diff(above) > 0).all() else (len(above), row)  # ids may count as well
            if len(above) and any(np.isclose(float(cell), v) for v in (above.sum(), above.mean(), *counts)):
                return True
    return False


def _among_codes(word: str, others: Sequence[str]) -> bool:
    """Whether a word stands among numbers, or without a digit among codes that have some."""
    share = sum(map(written_as_number, others))
    if not any(map(str.isdigit, word)):
        share = sum(any(map(str.isdigit, o)) for o in others)
    return bool(others) and share >= (1 - 2 * _ODD) * len(others)


def _refuse_notes(file: str, frame: pd.DataFrame) -> None:
    """Refuses sentences below the table, with nothing beside them."""
    if frame.shape[1] < 2 or len(frame) <= _FEWEST or frame.iloc[:, 0].dtype.kind in "iuf":
        return
    start = max(len(frame) - _BOTTOM, _FEWEST)
    above = _sample(frame.iloc[:start, 0])
    if any(map(_NOTE.fullmatch, above)):
        return
    for row in range(start, len(frame)):
        given = _given(frame, row)
        if len(given) == 1 and _text(frame.iloc[row, 0]) and _NOTE.fullmatch(given[0]):
            raise GraphError(
                f"{file}: {_lines(frame, np.arange(len(frame)) == row)} is a note below the table; remove it, or fill its "
                "cells if it is one of the rows"
            )


def _sample(cells: pd.Series) -> list[str]:
    """Some of the cells that are not empty, over the whole column."""
    step = max(len(cells) // _SAMPLE, 1)
    return [str(c).strip() for c in cells.iloc[::step].dropna()]


def _given(frame: pd.DataFrame, row: int) -> list[str]:
    """The cells of a row that are not empty."""
    return [text for c in frame.iloc[row] if (text := _text(c))]


def _text(cell: object) -> str:
    return "" if cell is None or cell != cell else str(cell).strip()  # NaN is not itself


def _lines(frame: pd.DataFrame, rows: npt.NDArray[np.bool_]) -> str:
    """The first rows as "line 3 ('a', empty), line 9 ('c', 'd')"."""
    few = frame.loc[rows].head(_SHOWN)
    return ", ".join(
        f"line {line} ({', '.join(repr(_text(c)[:40]) if _text(c) else 'empty' for c in list(cells)[:4])})"
        for line, cells in zip(few.index, few.itertuples(index=False), strict=True)
    )


def _counted(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"
