"""Columns by what two tables share: indexes of writers, ids and ends by their values, and readings that fit alike."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uge_core as uge
from uge_core.datasets.mapping import guess_mapping, read_pair
from uge_core.errors import GraphError


def written(folder, edges, nodes, **others):
    """A folder of tables, each a header and rows."""
    for name, rows in {"edges": edges, "nodes": nodes, **others}.items():
        (folder / f"{name}.csv").write_text("".join(",".join(map(str, r)) + "\n" for r in rows))
    return folder


def people(n=40, seed=0):
    """Ids 0 to n - 1 in another order, the group of each, and edges mostly within groups."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(n)
    group = {int(i): "NS"[int(i) % 2] for i in ids}
    ends = rng.integers(0, n, (2, 6 * n))
    kept = (ends[0] < ends[1]) & ((ends[0] % 2 == ends[1] % 2) | (rng.random(6 * n) < 0.2))
    return ids.tolist(), group, sorted(set(map(tuple, ends[:, kept].T.tolist())))


def pairs(graph):
    """The edges by id."""
    return {tuple(sorted(map(int, graph.ids(e)))) for e in graph.edges.T}


def messages(graph):
    return [m.text for m in graph.messages if m.code == "columns-by-values"]


def test_an_index_beside_edges_is_no_end(tmp_path):
    ids, group, edges = people()
    rows = [("", "person1", "person2"), *((i, *e) for i, e in enumerate(edges))]
    graph = uge.load(written(tmp_path, rows, [("id", "g"), *((i, group[i]) for i in ids)]))
    assert pairs(graph) == set(edges)


@pytest.mark.parametrize("head", ["", "Unnamed: 0"])
@pytest.mark.parametrize("first", [0, 1])
def test_an_index_beside_nodes_is_no_id(head, first, tmp_path):
    ids, group, edges = people()
    nodes = [(head, "person_id", "g"), *((r + first, i, group[i]) for r, i in enumerate(ids))]
    graph = uge.load(written(tmp_path, [("source", "target"), *edges], nodes))
    assert list(graph.ids(slice(None))) == list(map(str, ids)) and pairs(graph) == set(edges)
    (said,) = messages(graph) or ["taken for row numbers"]
    assert "taken for row numbers" in said and not graph.feature_names
    a = graph.attribute("g")
    assert [a.labels[c] for c in a.codes] == [group[i] for i in ids]


def test_an_index_that_edges_use_is_the_id(tmp_path):
    _, _, edges = people()
    nodes = [("", "code", "g"), *((r, f"p{r}", "NS"[r % 2]) for r in range(40))]
    graph = uge.load(written(tmp_path, [("source", "target"), *edges], nodes))
    assert pairs(graph) == set(edges)


def test_a_column_called_id_that_no_edge_uses_is_not_the_id(tmp_path):
    ids, group, edges = people()
    nodes = [("id", "number", "g"), *((f"row{r}", i, group[i]) for r, i in enumerate(ids))]
    graph = uge.load(written(tmp_path, [("source", "target"), *edges], nodes))
    assert pairs(graph) == set(edges) and "'number' holds the ids" in messages(graph)[0]


def test_two_columns_that_fit_as_ids_are_asked_for(tmp_path):
    ids, group, edges = people()
    nodes = [("id", "number", "g"), *((r, i, group[i]) for r, i in enumerate(ids))]
    written(tmp_path, [("source", "target"), *edges], nodes)
    with pytest.raises(GraphError, match=r"fit 'id' and 'number' alike.*dataset\.yaml"):
        uge.load(tmp_path)
    (tmp_path / "dataset.yaml").write_text("edges: edges.csv\nnodes: {file: nodes.csv, id: number}\n")
    graph = uge.load(tmp_path)
    assert list(graph.ids(slice(None))) == list(map(str, ids))
    same = [("id", "copy", "g"), *((i, i, group[i]) for i in ids)]
    (tmp_path / "dataset.yaml").unlink()
    assert pairs(uge.load(written(tmp_path, [("source", "target"), *edges], same))) == set(edges)


def test_years_called_from_and_to_are_no_ends(tmp_path):
    n = 2_500
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n, (4_000, 2))
    edges = [("person", "colleague", "from", "to"), *((a, b, 1990 + a % 20, 1995 + b % 20) for a, b in ends)]
    nodes = [("id", "g"), *((i, "NS"[i % 2]) for i in range(n))]
    graph = uge.load(written(tmp_path, edges, nodes))
    assert pairs(graph) == {tuple(sorted(map(int, e))) for e in ends if e[0] != e[1]}
    assert "'person' and 'colleague' hold the ends" in messages(graph)[0]


def test_two_pairs_of_columns_that_fit_as_ends_are_asked_for(tmp_path):
    ids, group, edges = people()
    rows = [("from", "to", "giver", "taker"), *((a, b, b, a) for a, b in edges)]
    written(tmp_path, rows, [("id", "g"), *((i, group[i]) for i in ids)])
    with pytest.raises(GraphError, match=r"'from' and 'to', or 'giver' and 'taker' could be the ends"):
        uge.load(tmp_path)
    (tmp_path / "dataset.yaml").write_text(
        "edges: {file: edges.csv, source: giver, target: taker}\nnodes: {file: nodes.csv, id: id}\n"
    )
    assert pairs(uge.load(tmp_path)) == set(edges)


def test_what_stands_beside_named_ends_is_no_rival(tmp_path):
    ids, group, edges = people()
    rows = [("source", "target", "year", "reply_to"), *((a, b, a % 3, b) for a, b in edges)]
    assert pairs(uge.load(written(tmp_path, rows, [("id", "g"), *((i, group[i]) for i in ids)]))) == set(edges)


KINDS = {
    "number": str,
    "text": lambda i: f"p{i}",
    "large": lambda i: str(2**62 + i),
    "zeros": lambda i: f"{i:04d}",
    "email": lambda i: f"{'xyz'[i % 3]}{i}@a.org",
}
FORMS = {",": "csv", ";": "csv", "\t": "tsv", " ": "csv", "parquet": "parquet", "xlsx": "xlsx"}


def saved(folder, form, name, header, rows, numbers):
    """A table in one of the forms, with a dataset.yaml's name for it."""
    path = folder / f"{name}.{FORMS[form]}"
    if form == "parquet":
        frame = pd.DataFrame(rows, columns=header)
        for column in numbers:
            frame[column] = frame[column].astype("int64")
        frame.to_parquet(path, index=False)
    elif form == "xlsx":
        book = openpyxl.Workbook()
        for row in ([header] if header else []) + rows:
            book.active.append(row)
        book.save(path)
    else:
        path.write_text("".join(form.join(map(str, r)) + "\n" for r in ([header] if header else []) + rows))


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(sorted(KINDS)),
    form=st.sampled_from(sorted(FORMS)),
    headers=st.tuples(st.booleans(), st.booleans()),
    index=st.tuples(st.booleans(), st.booleans()),
    names=st.sampled_from([("source", "target"), ("a", "b"), ("from", "to"), ("user_id", "friend_id")]),
    ident=st.sampled_from(["id", "person", "node_id"]),
    extra=st.sampled_from(["", "year", "weight", "since"]),
    order=st.randoms(use_true_random=False),
)
def test_the_same_graph_or_a_refusal(seed, kind, form, headers, index, names, ident, extra, order, tmp_path_factory):
    """Never another graph, however the tables were written."""
    ids, group, edges = people(20, seed)
    called = KINDS[kind]
    columns = {names[0]: [called(a) for a, _ in edges], names[1]: [called(b) for _, b in edges]}
    if extra:
        columns[extra] = [1 + (a * 7 + b) % 12 + (2000 if extra == "year" else 0) for a, b in edges]
    described = {ident: [called(i) for i in ids], "g": [group[i] for i in ids], "age": [20 + i % 9 for i in ids]}
    folder = tmp_path_factory.mktemp("g")
    for name, table, header, counts in zip(("edges", "nodes"), (columns, described), headers, index, strict=True):
        heads = list(table)
        order.shuffle(heads)
        if name == "edges":  # which end comes first says nothing, but a name may
            heads.sort(key=lambda h: (h == names[1]) - (h == names[0]) if h in names else 0)
        rows = [list(r) for r in zip(*(table[h] for h in heads), strict=True)]
        order.shuffle(rows)
        if counts:
            heads, rows = ["", *heads], [[i, *r] for i, r in enumerate(rows)]
        header = header or form == "parquet"
        saved(folder, form, name, heads if header else None, rows, [h for h in heads if h in ("", extra, "age") and h])
    try:
        graph = uge.load(folder)
    except GraphError:
        plain = all(headers) and not any(index) and extra != "since" and ident == "id" and form != " "
        assert not (plain and names == ("source", "target")), "such tables are everybody's"
        return
    assert {tuple(sorted(graph.ids(e))) for e in graph.edges.T} == {
        tuple(sorted((called(a), called(b)))) for a, b in edges
    }
    (a,) = (a for a in graph.attributes if set(a.labels) == {"N", "S"})
    assert {i: a.labels[c] for i, c in zip(graph.ids(slice(None)), a.codes, strict=True)} == {
        called(i): group[i] for i in ids
    }


def test_the_form_takes_no_index_for_ends_and_no_other_table_s_people_for_ids(tmp_path):
    ids, group, edges = people()
    rows = [("", "person1", "person2"), *((i, *e) for i, e in enumerate(edges))]
    written(tmp_path, rows, [("id", "g"), *((i, group[i]) for i in ids)])
    made = guess_mapping(read_pair(tmp_path, "edges.csv", "nodes.csv"))
    assert (made.source, made.target, made.id, made.sides) == ("person1", "person2", "id", "one")
    ratings = [("userId", "movieId", "rating"), *((u % 9 + 1, m + 1, 4.0) for u, m in edges)]
    movies = [("movieId", "title"), *((i + 1, f"Film {i}") for i in range(40))]
    written(tmp_path, ratings, movies)
    made = guess_mapping(read_pair(tmp_path, "edges.csv", "nodes.csv"))
    assert (made.source, made.target, made.id, made.sides) == ("movieId", "userId", "movieId", "items")


def town(n=60, e=150, seed=7):
    """Ids 1 to n, the group of each, and edges, everybody having one."""
    rng = np.random.default_rng(seed)
    pairs_of = sorted({tuple(sorted(p)) for p in rng.integers(1, n + 1, (e, 2)).tolist() if p[0] != p[1]})
    pairs_of += [(i, i % n + 1) for i in range(1, n + 1) if not any(i in p for p in pairs_of)]
    return list(range(1, n + 1)), {i: "FM"[(i * 7) % 3 % 2] for i in range(1, n + 1)}, pairs_of


IDS, GROUP, TIES = town()
PEOPLE = [("id", "g"), *GROUP.items()]
SHUFFLED = np.random.default_rng(3).permutation(IDS).tolist()
ALL_PAIRS = [(a, b, int((a, b) in TIES)) for a in IDS for b in IDS if a < b]


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (("wave", "user", "friend"), [(k % 4 + 1, a, b) for k, (a, b) in enumerate([*TIES, (1, 999)])]),
        (("source", "target", "wave"), [(a, b, k % 3 + 1) for k, (a, b) in enumerate([*TIES, (1, 999)])]),
        (("nominator", "nominee", "rank"), [(a, b, k % 5 + 1) for k, (a, b) in enumerate([*TIES, (1, 999)])]),
        (("class", "day_nr", "person", "friend"), [(a % 5 + 1, 3, a, b) for a, b in [*TIES, (998, 1), (1, 999)]]),
        (("Source", "Target", "Type", "Id"), [(a, b, "Undirected", k) for k, (a, b) in enumerate([*TIES, (1, 999)])]),
    ],
)
def test_an_unknown_id_makes_no_end_of_another_column(head, rows, tmp_path):
    with pytest.raises(GraphError, match=r"edges? names? a node that does not exist.*'99[89]'"):
        uge.load(written(tmp_path, [head, *rows], PEOPLE))


@pytest.mark.parametrize(
    ("head", "edges", "said"),
    [
        (("household", "p1", "p2"), [(1 + k // 2, a, b) for k, (a, b) in enumerate(TIES[:60])], "could be the ends"),
        (("person", "friend1", "friend2"), [(a, b, b if a % 9 else "") for a, b in TIES], "could be the ends"),
        (
            ("person", "friend1", "friend2"),
            [(a, b, a % 60 + 1 if a % 7 == 0 else "") for a, b in TIES],
            "row for each edge",
        ),
        (("user_id", "item_id", "rating"), [(a, b, 3) for a, b in TIES], "others that no file describes"),
        (("person", "club"), [(a, b) for a, b in TIES], "others that no file describes"),
        (("ego", "alter"), [(i, k) for i in IDS for k in range(1, i % 5 + 2)], "anew for each 'ego'"),
        (("user", "rating"), [(a, b) for a, b in TIES], "called like a number or a time"),
        (("ego", "alter", "known"), ALL_PAIRS, "1,770 of the 1,770 pairs"),
        (("source", "target", "value"), [(a, b, int(a % 3 > 0)) for a, b in TIES], "with '0' in column 'value'"),
        (("u", "v", "sign"), [(a, b, 1 if a % 3 else -1) for a, b in TIES], "with '-1' in column 'sign'"),
        (("a", "b", "action"), [(a, b, "add" if a % 3 else "remove") for a, b in TIES], "with 'remove'"),
        (("source", "target", "strength"), [(a, b, a % 9) for a, b in TIES], "with '0' in column 'strength'"),
    ],
)
def test_rows_that_may_be_read_in_two_ways_are_asked_for(head, edges, said, tmp_path):
    with pytest.raises(GraphError, match=said):
        uge.load(written(tmp_path, [head, *edges], PEOPLE))


@pytest.mark.parametrize(
    ("head", "rows", "said"),
    [
        (
            ("nr", "person", "g"),
            [(k + 1, i if k < 59 else SHUFFLED[0]) for k, i in enumerate(SHUFFLED)],
            "empty or repeated",
        ),
        (("id", "person_id", "g"), [(k + 1, i if k < 59 else "") for k, i in enumerate(SHUFFLED)], "empty or repeated"),
        (
            ("nr", "person", "g"),
            [(k + 1, i if i != 7 else 999) for k, i in enumerate(SHUFFLED)],
            "'nr' and 'person' alike",
        ),
        (("nr", "student", "g"), [(k + 1, f"{i:03}") for k, i in enumerate(SHUFFLED)], "their numbers in 'student'"),
        (("nr", "student", "g"), [(k + 1, f"{i}.0") for k, i in enumerate(SHUFFLED)], "their numbers in 'student'"),
        (("nr", "student", "g"), [(k + 1, f"S{i}") for k, i in enumerate(SHUFFLED)], "their numbers in 'student'"),
        (("rank", "g"), [(i,) for i in SHUFFLED], "no id"),
    ],
)
def test_row_numbers_are_no_ids_because_the_ids_have_a_flaw(head, rows, said, tmp_path):
    nodes = [head, *((*r, GROUP[i]) for r, i in zip(rows, SHUFFLED, strict=True))]
    with pytest.raises(GraphError, match=said):
        uge.load(written(tmp_path, [("from", "to"), *TIES], nodes))


@pytest.mark.parametrize("policy", ["drop", "add"])
@pytest.mark.parametrize(
    ("called", "said"), [(lambda i: f"{i:02}", "would match as"), (lambda i: i - 1, "count from 0, but ids from 1")]
)
def test_ids_written_otherwise_are_neither_dropped_nor_added(policy, called, said, tmp_path):
    edges = [("source", "target"), *((called(a), called(b)) for a, b in TIES)]
    written(tmp_path, edges, PEOPLE)
    (tmp_path / "dataset.yaml").write_text(f"edges: edges.csv\nnodes: nodes.csv\nunknown_nodes: {policy}\n")
    with pytest.raises(GraphError, match=said):
        uge.load(tmp_path)


@pytest.mark.parametrize(
    "head", [("movieId", "userId", "rating"), ("day", "userId", "item"), ("item", "user", "stars")]
)
@pytest.mark.parametrize("items", [False, True])
def test_which_end_names_a_user_is_decided_by_ids_and_names(head, items, tmp_path):
    who = next(i for i, name in enumerate(head) if name.startswith("user"))
    what = 1 - who if head[0] != "day" else 2
    rows = [head, *([a if i == who else b % 30 + 1 if i == what else 3 for i in range(3)] for a, b in TIES)]
    written(tmp_path, rows, PEOPLE, things=[("thing", "kind"), *((i, "xy"[i % 2]) for i in range(1, 31))])
    card = "edges: edges.csv\nusers: {file: nodes.csv, id: id}\n" + "items: {file: things.csv, id: thing}\n" * items
    (tmp_path / "dataset.yaml").write_text(card)
    graph = uge.load(tmp_path)
    joined = {tuple(sorted(i.removeprefix("user:").removeprefix("item:") for i in graph.ids(e))) for e in graph.edges.T}
    assert joined == {tuple(sorted((str(a), str(b % 30 + 1)))) for a, b in TIES}
    assert graph.num_users == 60 and graph.ids([0]) in (["1"], ["user:1"])


@pytest.mark.parametrize(
    "head",
    [
        ("user_id", "friend_id"),
        ("employee", "manager"),
        ("sender", "receiver", "count"),
        ("uid", "vid", "timestamp"),
        ("subject", "partner", "is_family"),
        ("respondent", "nominee", "closeness"),
        ("Person A", "Person B", "year"),
        ("lender", "borrower", "amount"),
    ],
)
def test_ordinary_names_of_ends_are_read(head, tmp_path):
    rows = [head, *((a, b, 1 + (a * 7 + b) % 5)[: len(head)] for a, b in TIES)]
    graph = uge.load(written(tmp_path, rows, [(head[0], "g", "age"), *((i, g, 20 + i % 50) for i, g in GROUP.items())]))
    assert pairs(graph) == {tuple(sorted(p)) for p in TIES}
