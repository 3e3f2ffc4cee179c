"""What is worth knowing about a graph's attributes before anyone trains on them.

Small groups, pairs of groups without an edge, columns that say nearly the same, and numbers that
are probably codes for a missing value. Nothing here changes the graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import FloatArray, IntArray
from uge_core.datasets.mixing import mixing
from uge_core.datasets.numeric import as_numbers
from uge_core.datasets.tables import counted
from uge_core.graph.association import FEWEST_KNOWN, PROXY, association
from uge_core.graph.graph import Attribute, Message
from uge_core.graph.suppression import FEWEST

SMALL_GROUP = FEWEST
_NEAR_CONSTANT = 0.95
_SHOWN = 5
_MOST_GROUPS = 50
_CHUNK = 64
_NOT_GIVEN = frozenset(
    """
    na|n/a|n.a|n.a.|#n/a|nan|null|#null!|nil|unknown|not known|?|??|-|--|---|.|..|missing|not given|not stated|not specified|
    unspecified|not provided|not reported|undisclosed|not disclosed|not available|no answer|no response|no reply|
    refused|refused to answer|declined|decline to answer|decline to state|decline to say|don't know|dont know|
    do not know|dk/na|dk/nr|not applicable|no information|no info|no value|unk|tbd|blank|empty|please select|please choose|
    select|select one|choose|choose one|\\n|#value!|#div/0!|#ref!|#name?|#num!|#n/v|#nv|don't know/refused|don't want to say|i don't know|no data|
    keine angabe|keine angaben|k.a|k.a.|k. a|k. a.|ohne angabe|weiß nicht|weiss nicht|unbekannt|keine antwort|verweigert|
    leer|bitte wählen|bitte auswählen|keine information|n. s.|n.s.|möchte ich nicht sagen|möchte ich nicht angeben|möchte nicht antworten|
    non renseigné|non renseignée|non précisé|non spécifié|non communiqué|inconnu|inconnue|ne sait pas|ne sais pas|nsp|
    sans objet|non concerné|non concernée|vide|veuillez choisir|veuillez sélectionner|je ne sais pas|ne se prononce pas|sans réponse|pas de réponse|refus|préfère ne pas répondre|préfère ne pas dire|
    je préfère ne pas répondre|je préfère ne pas le dire|ne souhaite pas répondre|je ne souhaite pas répondre|
    no aplica|seleccione|prefiero no decirlo|prefiero no decir|prefiero no responder|prefiero no contestar|no contesta|no sabe|ns/nc|
    no sabe/no contesta|no lo sé|desconocido|desconocida|sin respuesta|sin dato|sin datos|no especificado|no responde|
    prefiro não dizer|prefiro não responder|prefiro não informar|não sabe|não sei|não informado|não respondeu|
    desconhecido|sem resposta|
    preferisco non rispondere|preferisco non dirlo|preferisco non dire|non so|non indicato|non risponde|sconosciuto|
    non specificato|nessuna risposta|
    wil ik niet zeggen|wil niet zeggen|zeg ik liever niet|liever niet zeggen|onbekend|weet niet|weet ik niet|
    geen antwoord|geen opgave|
    vill inte uppge|vill ej uppge|vill inte svara|vet ej|vet inte|okänd|okänt|uppgift saknas|ej svar|inget svar|
    ønsker ikke å oppgi|ønsker ikke å svare|vil ikke oppgi|vet ikke|ukjent|ubesvart|ikke oppgitt|
    ønsker ikke at oplyse|ønsker ikke at svare|vil ikke oplyse|ved ikke|ukendt|uoplyst|
    en halua sanoa|en halua vastata|en osaa sanoa|ei tietoa|tuntematon|
    brak danych|brak odpowiedzi|nie wiem|odmowa|odmowa odpowiedzi|wolę nie mówić|wolę nie odpowiadać|nie podano|
    nechci odpovídat|nechci uvést|neuvedeno|nevím|neznámé|nem tudom|nem válaszolt|nincs válasz|prefer să nu răspund|
    nu știu|nu răspund|belirtmek istemiyorum|cevap yok|bilinmiyor|bilmiyorum|
    не указано|не указан|нет ответа|нет данных|неизвестно|не знаю|отказ|затрудняюсь ответить|предпочитаю не отвечать|
    предпочитаю не указывать|не вказано|невідомо|немає відповіді|δεν απαντώ|δεν γνωρίζω|άγνωστο|
    不愿透露|不願透露|未知|不知道|不详|不詳|拒绝回答|拒絕回答|未填|無回答|不明|未回答|回答しない|答えたくない|わからない|
    무응답|모름|응답 거부|응답거부|밝히고 싶지 않음|غير معروف|أفضل عدم الإجابة|أفضل عدم القول|לא ידוע|मालूम नहीं
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
"""What people write where they do not say, without brackets, in small letters."""
_RATHER_NOT = re.compile(
    r"(?:i )?(?:would |'d |i'd )?(?:prefer|rather|choose|wish|want)(?:red|s)?(?: to)? not(?: to)? "
    r"(?:say|answer|disclose|respond|state|share|specify|tell|reply|identify|report)\b.*"
    r"|(?:i )?(?:do not|don't) (?:wish|want|care) to (?:say|answer|disclose|respond|state|share|specify|tell|reply)\b.*"
)
_PLACEHOLDERS = re.compile(r"None|NaT|kA|KA|\.[A-Z_]")
"""None is how Python writes it, where none may be an answer; .A to .Z are of SAS and Stata."""
_INITIALS = frozenset({"DK", "KA", "kA", "NR", "NS"})
"""Not given, but among codes of countries or languages one of them."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(?:,\d+)?")
_WITH_COMMA = re.compile(r"[+-]?\d+,\d{2,}")
"""1,3 may be two answers that were ticked."""
_LONGEST_WORDS = 60
_WHOLE_CODES = frozenset({66, 77, 88, 99, 96, 97, 98, 666, 777, 888, 996, 997, 998, 6666, 7777, 8888, 9996, 9997, 9998})
_NEGATIVE_CODES = frozenset({*range(1, 10), 66, 77, 88, 96, 97, 98, 666, 777, 888, 996, 997, 998})
_FEWEST_SCALE = 3
_FEWEST_CODE = 66  # of two values, one of which is a single digit
_NINE_GAP = 3  # from the last answer of a scale to 9
_AGE_GAP = 4  # years that nobody has, before 97 to 99
_AGES = 10
_NEVER_ZERO = re.compile(r"(?:^|[\W_])(?:age|alter|year|birth\w*|born|height|weight)(?:$|[\W_])", re.IGNORECASE)


def about_attributes(
    name: str,
    edges: IntArray,
    num_users: int | None,
    attributes: Sequence[Attribute],
    features: FloatArray | None,
    feature_names: Sequence[str],
) -> tuple[Message, ...]:
    """Messages about the attributes of a graph and the columns beside them.

    Args:
        name: the graph's name.
        edges: (2, E) each undirected edge once, smaller end first.
        num_users: size of the first side of a bipartite graph, else None.
        attributes: the attributes.
        features: (N, F) or None.
        feature_names: the F names.
    """
    return (
        *_small_groups(name, attributes),
        *(m for a in attributes for m in _empty_cells(name, edges, num_users, a)),
        *_proxies(name, attributes, features, feature_names),
    )


def _small_groups(name: str, attributes: Sequence[Attribute]) -> tuple[Message, ...]:
    """A warning where groups are too small to say anything about them."""
    groups = [
        (int(n), f"{a.name} {label}: {n}")
        for a in attributes
        if a.side != "items"
        for label, n in zip(a.labels, a.sizes.tolist(), strict=True)
        if n < SMALL_GROUP
    ]
    if not groups:
        return ()
    text = (
        f"{name}: {counted(len(groups), 'group')} of fewer than {SMALL_GROUP} nodes; their figures are mostly "
        "chance, and people in them can be told apart"
    )
    shown = tuple(said for _, said in sorted(groups, key=lambda f: f[0])[:_SHOWN])
    return (Message("warning", "small-groups", text, len(groups), shown, "merge small groups, or bin a number"),)


def _empty_cells(name: str, edges: IntArray, num_users: int | None, attribute: Attribute) -> tuple[Message, ...]:
    """A note where pairs of groups have no edge at all."""
    bare = mixing(edges, num_users, attribute).empty
    if not bare:
        return ()
    text = (
        f"{name}: {counted(len(bare), 'pair')} of groups of {attribute.name} without an edge; their weight "
        "cannot be estimated"
    )
    # That nobody of a small group knows anybody of another says something about its people.
    small = {v for v, n in zip(attribute.labels, attribute.sizes, strict=True) if n < SMALL_GROUP}
    shown = tuple(f"{a} - {b}" for a, b in bare if not small.intersection((a, b)))[:_SHOWN]
    remedy = "merge groups or bin the attribute; --set shrinkage=2 pulls such pairs towards their rate without bias"
    return (Message("note", "cells-without-edges", text, len(bare), shown, remedy),)


def _proxies(
    name: str, attributes: Sequence[Attribute], features: FloatArray | None, feature_names: Sequence[str]
) -> tuple[Message, ...]:
    """Warnings about columns that nearly give an attribute away."""
    usable = [a for a in attributes if _spread(a)]
    messages = []
    pairs = [(v, a, b) for a, b in combinations(usable, 2) if a.side == b.side and (v := association(a, b)) >= PROXY]
    if pairs:
        text = (
            f"{name}: {counted(len(pairs), 'pair')} of attributes that say nearly the same; debiasing one leaves "
            "it readable through the other"
        )
        shown = tuple(f"{a.name} and {b.name}: Cramér's V {v:.3f}" for v, a, b in pairs[:_SHOWN])
        remedy = "treat both jointly (--sensitive A,B), or leave one out with --attributes"
        messages.append(Message("warning", "proxy-attributes", text, len(pairs), shown, remedy))
    if features is not None:
        close = [(r, f, a) for a in usable for f, r in _ratios(features, a)]
        if close:
            text = (
                f"{name}: {counted(len(close), 'feature')} nearly give an attribute away; a model that reads "
                "features reads it there"
            )
            shown = tuple(f"{feature_names[f]} by {a.name}: correlation ratio {r:.3f}" for r, f, a in close[:_SHOWN])
            remedy = "leave these columns out of the features (ignore: in dataset.yaml)"
            messages.append(Message("warning", "proxy-features", text, len(close), shown, remedy))
    return tuple(messages)


def _spread(a: Attribute) -> bool:
    """Whether an attribute has known values, and not nearly all the same."""
    known = int(a.sizes.sum())
    return known >= FEWEST_KNOWN and int(a.sizes.max()) < _NEAR_CONSTANT * known


def _ratios(features: FloatArray, a: Attribute) -> list[tuple[int, float]]:
    """The features whose correlation ratio with an attribute (share of variance between groups, its root) is high."""
    known = a.known
    n = int(known.sum())
    if a.num_values > _MOST_GROUPS or n < 10 * a.num_values:
        return []
    member = np.zeros((a.num_values, n), dtype=np.float32)
    member[a.codes[known], np.arange(n)] = 1
    sizes = np.maximum(a.sizes, 1)[:, None]
    proxies = []
    for start in range(0, features.shape[1], _CHUNK):
        block = features[known, start : start + _CHUNK]
        centred = block - block.mean(axis=0, dtype=np.float64).astype(np.float32)
        scale = np.abs(centred).max(axis=0)
        centred /= np.where(scale > 0, scale, 1)
        total = np.square(centred).sum(axis=0, dtype=np.float64)
        between = (np.square((member @ centred).astype(np.float64)) / sizes).sum(axis=0)
        ratio = np.sqrt(np.divide(between, total, out=np.zeros_like(total), where=total > 0))
        proxies += [(start + int(f), float(min(1.0, ratio[f]))) for f in np.flatnonzero(ratio >= PROXY)]
    # A flag that is nearly always 0 follows from few nodes; what varies is what gives a group away.
    return [(f, r) for f, r in proxies if _varies(features[known, f])]


def _varies(values: FloatArray) -> bool:
    """Whether no single value covers nearly all nodes."""
    return int(np.unique(values, return_counts=True)[1].max()) < _NEAR_CONSTANT * len(values)


def says_not_given(value: str) -> bool:
    """Whether a cell's text is what people write where a value is missing: NA, unknown, prefer not to say."""
    if _PLACEHOLDERS.fullmatch(value):
        return True
    if len(value) > _LONGEST_WORDS:
        return False
    plain = value.strip().casefold()
    if plain in _NOT_GIVEN:
        return True
    if plain.isalnum() and plain.isascii():
        return False
    plain = re.sub(r"[\s_]+", " ", plain.replace("\u2019", "'").strip(" \t()[]<>{}\"'*!,;:-\u2013"))
    parts = re.split(r" ?[/|] ?", plain)
    return (
        plain in _NOT_GIVEN
        or plain.rstrip(".") in _NOT_GIVEN
        or _RATHER_NOT.fullmatch(plain.rstrip(".")) is not None
        or (len(parts) > 1 and all(part in _NOT_GIVEN for part in parts))
    )


def words_not_given(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Those of a column's different texts that probably mean "not given", as words or as codes.

    What a text means follows from the others: DK is a country among countries, and 0 is a code among words.

    Args:
        name: the column's name.
        values: its different texts.
    """
    initials = [v for v in values if v in _INITIALS]
    letters = sum(len(v) == 2 and v.isalpha() and v.isupper() for v in values)  # SE, NO, DK
    words = [v for v in values if says_not_given(v) and v not in initials]
    words += initials if letters == len([v for v in initials if v.isupper()]) else []
    numbers = [v for v in values if _DECIMAL_COMMA.fullmatch(v)]
    others = [v for v in values if v not in words and v not in numbers]
    if len(numbers) + len(words) == len(values) and any("," in v for v in numbers):
        as_float = {v: float(v.replace(",", ".")) for v in numbers}
        codes = probable_codes(name, np.array(list(as_float.values())))
        words += [v for v, number in as_float.items() if number in codes]
    elif len(numbers) == 1 and len(others) > 1 and not any(any(map(str.isdigit, v)) for v in others):
        words += [v for v in numbers if "," not in v and _is_code(float(v))]
    return tuple(words)


def decimal_numbers(name: str, cells: pd.Series) -> bool:
    """Whether the cells of a column are numbers of which one is no whole number.

    2.0 is a whole number, as pandas writes whole numbers so beside empty cells. Words for "not given" do not count, and
    0,37 is a number too where all are written with a comma.
    """
    distinct = pd.Series(cells.dropna().unique())
    numbers = as_numbers(distinct)
    texts = distinct[np.isnan(numbers)].astype("str")
    if len(texts):
        texts = texts[~texts.isin(words_not_given(name, list(map(str, distinct))))]
        if not texts.str.fullmatch(_WITH_COMMA).all():
            return False
        numbers = np.append(numbers, as_numbers(texts.str.replace(",", ".", regex=False)))
    numbers = numbers[~np.isnan(numbers)]
    return bool((numbers != np.rint(numbers)).any())


def probable_codes(name: str, values: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """The numbers of a column that probably mean "not given", rising.

    Negative whole numbers are taken for codes where nothing negative belongs (beside ages), and where they are
    few, usual codes, and no part of a scale around 0; so is 0 in a column called age, year, birth, height or
    weight. Numbers at an end are taken for codes when they are further from the next value than all others are
    apart and written like codes (77, 88, 99, 97 to 99, 999), or, in a column of ages, when most of the
    values between are missing; so are 8 and 9 (7, 8, 9) behind a scale that ends earlier.

    Args:
        name: the column's name.
        values: its numbers, in any order, once or more often; NaN where missing.
    """
    numbers = values[np.isfinite(values)]
    if not len(numbers):
        return ()
    low, high, never = float(numbers.min()), float(numbers.max()), _NEVER_ZERO.search(name) is not None
    if ((numbers == low) | (numbers == high)).all():
        return _one_of_two(low, high)
    if not _is_code(high) and not (never and low <= 0):  # most features, whose many values take long to sort
        if not _is_code(low) or (low < 0 and low != np.rint(low) and low > -1e18):
            return ()
        second = float(numbers[numbers > low].min())
        if low == 0 and second <= 2 * (high - second):
            return ()
    distinct = np.unique(numbers)
    first = _low_codes(distinct, never)
    last = _high_codes(distinct[len(first) :], never)
    return (*map(float, first), *map(float, last))


def _one_of_two(low: float, high: float) -> tuple[float, ...]:
    """The code of two values; -1 and 1 are a sign, 0 and 1 an answer."""
    if 0 <= low < 10 and high >= _FEWEST_CODE and _is_code(high):
        return (high,)
    usual = low < -1 and low == np.rint(low) and (-low in _NEGATIVE_CODES or set(str(int(-low))) == {"9"})
    return (low,) if usual and 0 <= high < 10 and high != -low else ()


def _low_codes(distinct: npt.NDArray[np.float64], never: bool) -> npt.NDArray[np.float64]:
    """The codes at the low end of rising numbers."""
    whole = bool((distinct == np.rint(distinct)).all())
    negative, others = distinct[distinct < 0], distinct[distinct >= 0]
    codes = distinct[:0]
    whole = whole or bool(len(negative) and (negative == np.rint(negative)).all() and negative[-1] <= -_FEWEST_CODE)
    if len(negative) and len(others) and (never or (whole and _are_negative_codes(negative, others))):
        codes = negative
    rest = distinct[len(codes) :]
    if never and len(rest) > 1 and rest[0] == 0:
        return distinct[: len(codes) + 1]
    if len(codes) or len(rest) < _FEWEST_SCALE:
        return codes
    second, high = rest[1], rest[-1]
    far = rest[-2] > second and second - rest[0] > 2 * (high - second) and _is_code(float(rest[0]))
    return distinct[:1] if far else codes


def _are_negative_codes(negative: npt.NDArray[np.float64], others: npt.NDArray[np.float64]) -> bool:
    """Whether negative whole numbers beside others are codes and no part of a scale."""
    usual = all(int(-n) in _NEGATIVE_CODES or set(str(int(-n))) == {"9"} for n in negative)
    if not usual or len(others) < 2 or len(negative) > len(others) or -negative[0] == others[-1]:
        return False
    if len(negative) == 1:
        # -1 stands beside counts; -2 may be the end of what goes below 0.
        return bool(negative[0] == -1 or others[0] - negative[0] > 2)
    together = np.append(negative, others[0])
    return bool((np.diff(together) > 1).any())


def _high_codes(rest: npt.NDArray[np.float64], never: bool) -> npt.NDArray[np.float64]:
    """The codes at the high end of rising numbers."""
    none = rest[:0]
    if len(rest) < _FEWEST_SCALE:
        return none
    count = 0
    while count < len(rest) - 2 and _is_code(float(rest[-1 - count])):
        count += 1
    for n in range(count, 0, -1):  # as many as stand apart from what is left
        others, codes = rest[: len(rest) - n], rest[len(rest) - n :]
        gap, spread = codes[0] - others[-1], others[-1] - others[0]
        if others[0] < 0 < others[-1] and n > 1:
            continue
        small = codes[0] < 10
        if gap > 2 * spread and not small:
            return codes
        dense = bool((np.diff(others) == 1).all())
        if small and n > 1 and codes[-1] == 9 and dense and 0 <= others[0] <= 1 and gap >= 2:
            return codes
        scale = others[0] == 1 and len(others) > _FEWEST_SCALE and gap >= _NINE_GAP
        if small and n == 1 and codes[0] == 9 and dense and 0 <= others[0] <= 1 and (gap > 2 * spread or scale):
            return codes
        if never and not small and gap > _AGE_GAP and len(others) >= _AGES and codes[-1] < 100:
            return codes
    return none


def _is_code(number: float) -> bool:
    """Whether a number is written like a code: 0, negative, nines, or as surveys do (77, 88, 97, 98)."""
    if number != np.rint(number) or abs(number) >= 2**63:
        return number != 0 and abs(number) >= 1e18
    whole = abs(int(number))
    return number <= 0 or set(str(whole)) == {"9"} or whole in _WHOLE_CODES or whole in (7, 8)
