"""A graph that describes itself in a ``dataset.yaml``: what `card` has checked, turned into the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from uge_core.arrays import IntArray
from uge_core.datasets.assemble import drop_isolated_items, edge_columns, finish
from uge_core.datasets.card import FILE, Card, mistyped, read_card
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.evidence import guess_ends, guess_id, id_and_ends, two_sides
from uge_core.datasets.ids import ASK, add_unknown, by_id, drop_unknown, node_index, refuse_other_order, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Folder, Found, Layout, Part
from uge_core.datasets.layouts.tables import check_headers, read_any
from uge_core.datasets.sparse import read_sparse
from uge_core.datasets.stray_rows import refuse_odd_ids
from uge_core.datasets.tables import Table, as_numbers, counted, usable_names
from uge_core.errors import DatasetMissing, GraphError
from uge_core.graph.graph import AttributedGraph, Column, Defaults, Message
from uge_core.registry import unknown_name

NOT_NAMED = f"not named in {FILE}"


def _read(dataset: Found, asked: Asked) -> AttributedGraph:
    """The graph that the card describes."""
    path = dataset.files["card"]
    return read_described(path, read_card(path), asked, dataset.name)


def read_described(path: Path, card: Card, asked: Asked, name: str) -> AttributedGraph:
    """The graph that a card describes.

    Args:
        path: the card's, whose folder holds the files.
        card: what it says.
        asked: as a layout's `read` has it.
        name: the graph's, unless the card has one.

    Raises:
        GraphError: the files are not as the card says.
    """
    reader = _Reader(path, card, asked, card.get("name") or name)
    graph = reader.bipartite() if card.get("users.file") else reader.one_table()
    for key in ("sensitive", "features", "ignore"):
        reader.check_named(key)
    for chosen in card.names("sensitive") if asked is None else ():
        graph.attribute(chosen)
    return graph


@dataclass(frozen=True)
class _Reader:
    """Reads the files of one card.

    Attributes:
        path: of the card.
        card: what it says.
        asked: the attributes the user named, which take the place of the card's.
        name: the graph's name.
        seen: the columns of the tables read so far, by lower-case name.
    """

    path: Path
    card: Card
    asked: Asked
    name: str
    seen: dict[str, str] = field(default_factory=dict)

    def table(self, key: str) -> Table:
        """One of the files as a table."""
        table = read_any(
            self.file(key),
            self.card.get("separator"),
            self.card.get("encoding") or "utf-8-sig",
            header=self.card.get(f"{key}.header"),
            columns=self.card.get(f"{key}.columns"),
        )
        self.seen.update({n.lower(): n for n in table.names})
        return table

    def file(self, key: str) -> Path:
        """The path of one of the files, which is in the card's folder."""
        written = str(self.card.get(f"{key}.file"))
        home = self.path.parent.resolve()
        for option in (home / written, home / f"{written}.gz"):
            if option.is_file():
                if not option.resolve().is_relative_to(home):
                    raise mistyped(
                        self.path, f"{key}.file", written, "a file in the folder of dataset.yaml, or below it"
                    )
                return option
        there = ", ".join(Folder.open(home).files[:10])
        raise DatasetMissing(f"{self.path.name}: {key}.file: {written} is not in the folder; found: {there}")

    def column(self, table: Table, key: str) -> str | None:
        """The column that the card names under `key`, or None where it names none."""
        written = self.card.get(key)
        if written is None:
            return None
        column = table.column(str(written))
        if column is None:
            raise GraphError(
                f"{self.path.name}: {key}: {unknown_name('column', str(written), table.names)} ({table.file})"
            )
        return column

    def check_named(self, key: str) -> None:
        """Refuses names of columns that no file has."""
        for written in self.card.names(key):
            if written.lower() not in self.seen:
                raise GraphError(
                    f"{self.path.name}: {key}: {unknown_name('column', written, list(self.seen.values()))}"
                )

    def assign(self, table: Table, fixed: Mapping[str, Role], *, whole: bool = True) -> NodeColumns:
        """Roles by the card, then by the values.

        Args:
            table: the nodes.
            fixed: roles by lower-case name that the card cannot change.
            whole: whether every attribute must be among the columns.
        """
        own = self.card.attributes
        if own is not None and whole:
            for name in own:
                if table.column(name) is None:
                    raise GraphError(
                        f"{self.path.name}: attributes: {unknown_name('column', name, table.names)} ({table.file})"
                    )
        roles: dict[str, Role] = {n.lower(): _with_numbers(table, n, r) for n, r in (own or {}).items()}
        roles |= {n.lower(): Role("feature") for n in self.card.names("features")}
        roles |= {n.lower(): Role("ignored", detail=f"by {FILE}") for n in self.card.names("ignore")}
        asked = self.asked
        if asked is None and own is not None:
            asked = frozenset(n.lower() for n in own)
        rest = Role("ignored", detail=NOT_NAMED) if self.card.get("features") and own is not None else Role("auto")
        columns = assign(table, {**roles, **fixed}, rest, asked)
        if self.card.get("features") is not None:
            columns = _keep_features(columns, self.called(table, "features"))
        if self.asked is None and own is not None:
            columns = replace(columns, columns=tuple(map(_by_card, columns.columns)))
        marked = self.called(table, "sensitive")
        return replace(columns, columns=tuple(_marked(c, marked) for c in columns.columns))

    def called(self, table: Table, key: str) -> set[str]:
        """The columns that a key of the card names, as the file and as the graph calls them."""
        used = dict(zip((n.lower() for n in table.names), usable_names(table.names), strict=True))
        return {name.lower() for n in self.card.names(key) for name in (n, used.get(n.lower(), n))}

    def finished(
        self,
        source: IntArray,
        target: IntArray,
        total: int,
        parts: Sequence[NodeColumns],
        *,
        node_ids: pd.Index,
        num_users: int | None = None,
    ) -> AttributedGraph:
        """The graph of edges between `total` nodes and what their columns became."""
        columns = NodeColumns.join(parts)
        called = {name.lower(): a.name for a in columns.attributes for name in (*a.aliases, a.name)}
        declared = dict.fromkeys(called[n.lower()] for n in self.card.names("sensitive") if n.lower() in called)
        defaults = Defaults(test_share=Defaults.test_share if num_users is None else 0.2, sensitive=tuple(declared))
        return finish(
            self.name,
            "dataset-yaml",
            source,
            target,
            total,
            columns,
            node_ids=node_ids,
            num_users=num_users,
            defaults=defaults,
        )

    def said(self, bipartite: bool = False) -> NodeColumns:
        """What the card says of the graph as a whole."""
        messages = []
        origin = [f"{k} {self.card.get(k)}" for k in ("licence", "source") if self.card.get(k)]
        if origin:
            messages.append(Message("note", "origin", f"{self.path.name}: {', '.join(origin)}"))
        directed = bool(self.card.get("directed"))
        if directed and bipartite:
            text = f"{self.path.name}: directed: not used, as every edge joins a user and an item"
            messages.append(Message("note", "direction-unused", text, remedy="leave directed out"))
        return NodeColumns(messages=tuple(messages), directed=directed)

    def edge_roles(self, edges: Table, ends: tuple[str, str]) -> NodeColumns:
        """The roles of the edge file's columns."""
        named = self.named_ends(edges) is not None
        return edge_columns(edges, ends, self.column(edges, "edges.weight"), described=named)

    def named_ends(self, edges: Table) -> tuple[str, str] | None:
        """The two columns that hold the ends of an edge, where the card names one."""
        source, target = self.column(edges, "edges.source"), self.column(edges, "edges.target")
        if source is None and target is None:
            return None
        guessed = [c for c in guess_ends(edges) if c not in (source, target)]
        source, target = source or guessed[0], target or guessed[-1]
        if source == target:
            raise GraphError(f"{self.path.name}: edges.source and edges.target are both {source!r}; name two columns")
        return source, target

    def check_headers(self, key: str, nodes: Table, edges: Table, id_column: str, ends: tuple[str, str]) -> None:
        """Refuses a first line that is a row, unless the card says what it is."""
        told = [self.card.get(f"{k}.header") is not None or self.card.get(f"{k}.columns") for k in (key, "edges")]
        named = [self.card.get(f"{key}.id"), self.card.get("edges.source") and self.card.get("edges.target")]
        sure = [bool(t or n) or table.headless for t, n, table in zip(told, named, (nodes, edges), strict=True)]
        check_headers(replace(nodes, headless=sure[0]), replace(edges, headless=sure[1]), id_column, ends)

    def one_table(self) -> AttributedGraph:
        """The graph of one node table; bipartite where a column tells the sides apart."""
        nodes = self.table("nodes")
        id_column = self.column(nodes, "nodes.id") or guess_id(nodes)
        side = self.card.get("sides.column")
        if self.file("edges").suffix == ".npz":
            fixed, ids = {id_column.lower(): Role("id")}, node_index(nodes, id_column)
            if side is not None:
                raise GraphError(f"{self.path.name}: sides needs a table of edges, not a matrix; write them as CSV")
            if self.card.get("unknown_nodes") is not None:
                raise GraphError(
                    f"{self.path.name}: unknown_nodes is for a table of edges; a matrix has a row for every node of "
                    f"{nodes.file}, leave it out"
                )
            source, target, size, described = read_sparse(self.file("edges"), self.card.get("directed"))
            if size != len(nodes):
                raise GraphError(
                    f"{nodes.file}: {len(nodes):,} rows, but the matrix has {size:,}; row i of each is the same node"
                )
            refuse_other_order(nodes, self.file("edges").name, id_column)
            parts = [self.assign(nodes, fixed), described, self.said()]
            return self.finished(source, target, size, parts, node_ids=ids)
        edges = self.table("edges")
        found = id_and_ends(
            nodes, edges, ident=self.column(nodes, "nodes.id"), ends=self.named_ends(edges), one_kind=side is None
        )
        id_column, ends = found.id, found.ends
        self.check_headers("nodes", nodes, edges, id_column, ends)
        refuse_odd_ids(nodes, id_column, pd.concat([edges.frame[end] for end in ends]))
        fixed, ids = {id_column.lower(): Role("id")}, node_index(nodes, id_column)
        source, target = by_id(edges, ends[0], ids), by_id(edges, ends[1], ids)
        allowed = f"the {len(ids):,} ids in column {id_column!r} of {nodes.file}, compared as text"
        policy = self.card.get("unknown_nodes") or "refuse"
        lost: tuple[Message, ...] = ()
        if policy == "drop":
            edges, kept, lost = drop_unknown(edges, ends, (source, target), nodes.file, ids)
            source, target = source[kept], target[kept]
        elif policy == "add" and side is None:
            ids, (source, target), lost = add_unknown(edges, ends, (source, target), ids, nodes.file)
        remedy = ASK
        if side is not None:
            remedy = (
                "add the nodes, remove these rows, or write unknown_nodes: drop in dataset.yaml, which leaves these "
                f"edges out (add is not possible here, as column {side!r} must tell the side of every node)"
            )
        refuse_unknown(edges, ends, (source, target), allowed, ids, remedy)
        described = NodeColumns.join([self.edge_roles(edges, ends), NodeColumns(messages=(*found.messages, *lost))])
        if side is None:
            own = self.assign(nodes, fixed).with_unknown(len(ids) - len(nodes))
            parts = [own, described, self.said()]
            return self.finished(source, target, len(ids), parts, node_ids=ids)
        chosen = nodes.column(str(side))
        if chosen is None:
            raise GraphError(
                f"{self.path.name}: sides.column: {unknown_name('column', str(side), nodes.names)} ({nodes.file})"
            )
        fixed[chosen.lower()] = Role("ignored", detail="tells the sides apart")
        users = (nodes.frame[chosen] == str(self.card.get("sides.users"))).to_numpy()
        if not users.any() or users.all():
            values = ", ".join(map(repr, nodes.frame[chosen].dropna().unique()[:5]))
            raise GraphError(
                f"{self.path.name}: sides.users: {self.card.get('sides.users')!r} must be the value of some nodes "
                f"and not of all; found in {chosen}: {values}"
            )
        inside = users[source] == users[target]
        if inside.any():
            raise self.inside(edges, inside, ends)
        first = np.where(users[source], source, target)
        second = np.where(users[source], target, source)
        return self.sided(
            (nodes, np.flatnonzero(users)), (nodes, np.flatnonzero(~users)), ids, first, second, described, fixed, fixed
        )

    def bipartite(self) -> AttributedGraph:
        """The graph of users and items in tables of their own."""
        edges, users = self.table("edges"), self.table("users")
        items = self.table("items") if self.card.get("items.file") else None
        ends = self.named_ends(edges) or two_sides(users, items, edges, self.column(users, "users.id"))
        user_column, item_column = self.side_id("users", users, edges, ends[0]), ""
        self.check_headers("users", users, edges, user_column, ends)
        refuse_odd_ids(users, user_column, edges.frame[ends[0]])
        user_ids = node_index(users, user_column)
        if items is not None:
            item_column = self.side_id("items", items, edges, ends[1])
        policy = self.card.get("unknown_nodes") or "refuse"
        lost: tuple[Message, ...] = ()
        user = by_id(edges, ends[0], user_ids)
        item_ids = pd.Index(edges.frame[ends[1]].dropna().unique()) if items is None else node_index(items, item_column)
        item = by_id(edges, ends[1], item_ids)
        also_user = by_id(edges, ends[1], user_ids) >= 0
        inside = (user >= 0) & (item < 0) & also_user
        if items is not None and policy != "refuse":
            inside |= (user < 0) & (by_id(edges, ends[0], item_ids) >= 0)  # or items would be made people
        if inside.any():
            raise self.inside(edges, inside, ends)
        where = users.file + (f" or {items.file}" if items else "")
        if policy == "drop":
            edges, kept, lost = drop_unknown(edges, ends, (user, item), where)
            user, item, also_user = user[kept], item[kept], also_user[kept]
            if items is None:
                item_ids = pd.Index(edges.frame[ends[1]].unique())
                item = by_id(edges, ends[1], item_ids)
        elif policy == "add":
            user_ids, (user,), lost = add_unknown(edges, ends[:1], (user,), user_ids, users.file, "user")
            if items is not None:
                item_ids, (item,), more = add_unknown(edges, ends[1:], (item,), item_ids, items.file, "item")
                lost = (*lost, *more)
        shared = () if items is not None or not also_user.any() else (_shared_ids(edges, also_user, ends),)
        allowed = f"the {len(user_ids):,} users of {users.file} in {ends[0]}"
        allowed += f" and the {len(item_ids):,} items of {items.file} in {ends[1]}" if items else ""
        refuse_unknown(edges, ends, (user, item), allowed, remedy=ASK)
        ids = user_ids.astype(object).append(item_ids.astype(object))
        if ids.has_duplicates:
            ids = ("user:" + user_ids.astype(object)).append("item:" + item_ids.astype(object))
        described = NodeColumns.join([self.edge_roles(edges, ends), NodeColumns(messages=(*shared, *lost))])
        rows = (users, np.arange(len(user_ids))), (items, np.arange(len(item_ids)))
        second = item + len(user_ids)
        fixed = {user_column.lower(): Role("id")}, {item_column.lower(): Role("id")}
        self.check_attributes(users, items)
        return self.sided(*rows, ids, user, second, described, *fixed)

    def side_id(self, key: str, nodes: Table, edges: Table, end: str) -> str:
        """The id of users or of items."""
        return id_and_ends(nodes, edges, ident=self.column(nodes, f"{key}.id"), ends=(end, end)).id

    def inside(self, edges: Table, wrong: npt.NDArray[np.bool_], ends: tuple[str, str]) -> GraphError:
        """The error about edges that stay on one side."""
        return GraphError(
            f"{edges.file}: {counted(int(wrong.sum()), 'edge')} inside one side, first: "
            f"{edges.first_lines(wrong, *ends)}; "
            "every edge of a bipartite graph joins a user "
            f"({ends[0]}) and an item ({ends[1]}), remove or correct these rows"
        )

    def check_attributes(self, users: Table, items: Table | None) -> None:
        """Refuses attributes that neither side has."""
        names = (*users.names, *(items.names if items else ()))
        for name in self.card.attributes or ():
            if name.lower() not in {n.lower() for n in names}:
                raise GraphError(f"{self.path.name}: attributes: {unknown_name('column', name, names)}")

    def of_rows(self, table: Table, rows: IntArray, fixed: Mapping[str, Role]) -> NodeColumns:
        """The columns of some rows of a side's table; rows behind its last one are nodes that were added."""
        there = rows[rows < len(table)]
        chosen = replace(table, frame=table.frame.iloc[there])
        return self.assign(chosen, fixed, whole=False).with_unknown(len(rows) - len(there))

    def sided(
        self,
        users: tuple[Table, IntArray],
        items: tuple[Table | None, IntArray],
        ids: pd.Index,
        first: IntArray,
        second: IntArray,
        described: NodeColumns,
        of_users: Mapping[str, Role],
        of_items: Mapping[str, Role],
    ) -> AttributedGraph:
        """A bipartite graph: the tables with the rows of each side, and the positions in `ids` of every edge's ends."""
        (table, rows), (other, item_rows) = users, items
        place = np.full(len(ids), -1, dtype=np.int64)
        item_places = item_rows if other is table else np.arange(len(rows), len(ids))
        place[rows], place[item_places] = np.arange(len(rows)), np.arange(len(item_rows))
        item, kept, notes = drop_isolated_items(self.name, place[second], len(item_rows))
        total = len(rows) + int(kept.sum())
        parts = [self.of_rows(table, rows, of_users).on_side("users", 0, total)]
        if other is not None:
            said = () if other is table else other.messages
            stay = replace(other, messages=said)
            of_side = self.of_rows(stay, item_rows[kept], of_items).on_side("items", len(rows), total)
            if other is table:
                of_side = _apart(parts[0], of_side)
            parts.append(of_side)
        parts += [described, self.said(bipartite=True), NodeColumns(messages=notes)]
        return self.finished(
            place[first],
            len(rows) + item,
            total,
            parts,
            node_ids=ids[rows].append(ids[item_places[kept]]),
            num_users=len(rows),
        )


def _shared_ids(edges: Table, wrong: npt.NDArray[np.bool_], ends: tuple[str, str]) -> Message:
    """The warning about items that are called like users."""
    text = (
        f"{edges.file}: {counted(int(wrong.sum()), 'edge')} with an item ({ends[1]}) that is called like a user; "
        "the two count as different nodes, called user:ID and item:ID"
    )
    remedy = f"name items in {FILE}, so that an edge between two users is refused"
    return Message("warning", "ids-on-both-sides", text, int(wrong.sum()), (edges.first_lines(wrong, *ends),), remedy)


def _apart(users: NodeColumns, items: NodeColumns) -> NodeColumns:
    """The items' part of a table that both sides share; an attribute of both is called item_NAME there."""
    taken = {a.name.lower() for a in users.attributes}
    attributes = tuple(replace(a, name=f"item_{a.name}") if a.name.lower() in taken else a for a in items.attributes)
    listed = {c.name for c in users.columns}
    return replace(items, attributes=attributes, columns=tuple(c for c in items.columns if c.name not in listed))


def _with_numbers(table: Table, name: str, role: Role) -> Role:
    """The role with its missing codes in every way the column writes these numbers (0 and 0.0)."""
    column = table.column(name)
    if column is None or not role.missing:
        return role
    codes = as_numbers(pd.Series(role.missing, dtype="str"))
    written = pd.Series(table.frame[column].dropna().unique(), dtype="str")
    same = written[np.isin(as_numbers(written), codes[~np.isnan(codes)])]
    return replace(role, missing=tuple(dict.fromkeys([*role.missing, *same])))


def _keep_features(columns: NodeColumns, names: set[str]) -> NodeColumns:
    """Only the features called so."""
    if columns.features is None:
        return columns
    keep = [i for i, n in enumerate(columns.feature_names) if n.lower() in names]
    gone = {n for i, n in enumerate(columns.feature_names) if i not in set(keep)}
    roles = tuple(
        replace(c, role="ignored", detail=NOT_NAMED) if c.role == "feature" and c.name in gone else c
        for c in columns.columns
    )
    kept = columns.features[:, keep] if keep else None
    return replace(columns, features=kept, feature_names=tuple(columns.feature_names[i] for i in keep), columns=roles)


def _by_card(column: Column) -> Column:
    """A column that was left out because the card names the attributes, with that reason."""
    detail = column.detail.replace("not named by --attributes", NOT_NAMED)
    return replace(column, detail=detail)


def _marked(column: Column, sensitive: set[str]) -> Column:
    """A sensitive column with a word about it."""
    if column.role != "attribute" or column.name.lower() not in sensitive:
        return column
    return replace(column, detail="; ".join(filter(None, ("sensitive", column.detail))))


POSITION = 20
LAYOUTS = (
    Layout(
        "dataset-yaml", "one that describes itself", (Part("card", (FILE,), "the keys that docs/data.md lists"),), _read
    ),
)
