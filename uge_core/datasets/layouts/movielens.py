"""MovieLens-1M and -100K: users, movies, and an edge for every rating.

Paper: Sec. 6.1; every rating counts as an edge, whatever its value. Users are the nodes 0 to
num_users - 1 in the order of their file, movies follow. User and movie numbers overlap, so node
ids carry the side: ``user:1``, ``movie:1193``. Movies nobody rated are dropped with a note
(1M: 6,040 + 3,706 nodes). The attributes are the users' gender, age and occupation; `genre`, the
first a movie lists, is an attribute of items. The 1M ages are bands already and keep GroupLens'
codes; the 100K ages are cut at the same bands.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from uge_core.datasets.assemble import drop_isolated_items, edge_columns, finish
from uge_core.datasets.columns import NodeColumns, Role, assign
from uge_core.datasets.ids import by_id, node_index, refuse_unknown
from uge_core.datasets.layouts.base import Asked, Found, Layout, Part
from uge_core.datasets.tables import Table, read_lines, read_table
from uge_core.errors import GraphError
from uge_core.graph.graph import AttributedGraph, Column, Defaults

_ENCODING = "latin-1"
_AGE_BANDS = (18, 25, 35, 45, 50, 56)
_RATING = ("user_id", "movie_id", "rating", "timestamp")
_GENRES = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)
_ID, _IGNORED, _ATTRIBUTE = Role("id"), Role("ignored"), Role("attribute")
_USERS = {"user_id": _ID, "gender": _ATTRIBUTE, "occupation": _ATTRIBUTE, "zip": _IGNORED}


def _read_1m(dataset: Found, asked: Asked) -> AttributedGraph:
    """MovieLens-1M, from ratings.dat or from a file of pairs."""
    users = read_table(
        dataset.files["users"], sep="::", names=("user_id", "gender", "age", "occupation", "zip"), encoding=_ENCODING
    )
    path = dataset.files["ratings"]
    ratings = read_table(path, sep="::", names=_RATING) if path.name.startswith("ratings") else read_table(path)
    movies = _movies_1m(dataset) if "movies" in dataset.files else None
    age = Role("attribute", ordered=True, detail="GroupLens' bands: 1 is under 18, 18 is 18-24, 56 is 56+")
    return _assemble(dataset, "movielens-1m", users, ratings, movies, {**_USERS, "age": age}, asked)


def _read_100k(dataset: Found, asked: Asked) -> AttributedGraph:
    """MovieLens-100K."""
    users = read_table(
        dataset.files["users"], sep="|", names=("user_id", "age", "gender", "occupation", "zip"), encoding=_ENCODING
    )
    ratings = read_table(dataset.files["ratings"], sep="\t", names=_RATING)
    head = ("movie_id", "title", "date", "video", "url")
    movies = read_table(dataset.files["movies"], sep="|", names=(*head, *_GENRES), encoding=_ENCODING)
    flags = movies.frame.loc[:, list(_GENRES)] == "1"
    genre = flags.idxmax(axis=1).where(flags.any(axis=1))
    movies = Table(movies.file, movies.frame[["movie_id", "title"]].assign(genre=genre))
    age = Role("attribute", bands=_AGE_BANDS)
    return _assemble(dataset, "movielens-100k", users, ratings, movies, {**_USERS, "age": age}, asked)


def _movies_1m(dataset: Found) -> Table:
    """movies.dat, whose titles may hold colons, as id, title and first genre."""
    path = dataset.files["movies"]
    rows = [line.split("::") for line in read_lines(path, _ENCODING)]
    short = next((i for i, r in enumerate(rows, start=1) if len(r) < 3), None)
    if short is not None:
        raise GraphError(f"{path.name}: line {short} has fewer than the three fields MovieID::Title::Genres")
    cells = [(r[0], "::".join(r[1:-1]), r[-1].split("|")[0] or None) for r in rows]
    frame = pd.DataFrame(cells, columns=["movie_id", "title", "genre"], dtype="str", index=range(1, len(cells) + 1))
    return Table(path.name, frame)


def _assemble(
    dataset: Found,
    layout: str,
    users: Table,
    ratings: Table,
    movies: Table | None,
    roles: dict[str, Role],
    asked: Asked,
) -> AttributedGraph:
    """The bipartite graph of the three tables."""
    ends = (ratings.require("user_id"), ratings.require("movie_id"))
    user_ids = node_index(users, users.require("user_id"))
    if movies is None:
        numbers = pd.Series(ratings.frame[ends[1]].dropna().unique())
        movie_ids = pd.Index(numbers.iloc[np.lexsort((numbers, pd.to_numeric(numbers, errors="coerce")))])
    else:
        movie_ids = node_index(movies, "movie_id")
    source, item = by_id(ratings, ends[0], user_ids), by_id(ratings, ends[1], movie_ids)
    allowed = f"the {len(user_ids):,} users of {users.file}"
    allowed += f" and the {len(movie_ids):,} movies of {movies.file}" if movies else ""
    refuse_unknown(ratings, ends, (source, item), allowed)

    item, kept, notes = drop_isolated_items(dataset.name, item, len(movie_ids))
    num_nodes = len(user_ids) + int(kept.sum())
    parts = [assign(users, roles, _IGNORED, asked).on_side("users", 0, num_nodes)]
    if movies is not None:
        rated = Table(movies.file, movies.frame[kept])
        genre = Role("attribute", detail="the first a movie lists")
        columns = assign(rated, {"movie_id": _ID, "genre": genre}, _IGNORED, asked, replaces=False)
        parts.append(columns.on_side("items", len(user_ids), num_nodes))
    return finish(
        dataset.name,
        layout,
        source,
        len(user_ids) + item,
        num_nodes,
        NodeColumns.join([*parts, _rating_columns(ratings, ends), NodeColumns(messages=notes)]),
        node_ids=("user:" + user_ids.astype(object)).append("movie:" + movie_ids[kept].astype(object)),
        num_users=len(user_ids),
        defaults=Defaults(test_share=0.2),
    )


def _rating_columns(ratings: Table, ends: tuple[str, str]) -> NodeColumns:
    """The roles of the rating file's columns; a rating's value is no weight in the paper."""
    columns = edge_columns(ratings, ends).columns
    detail = "every rating is an edge, whatever its value"
    return NodeColumns(
        columns=tuple(Column(c.file, c.name, c.role, detail) if c.name == "rating" else c for c in columns),
        messages=ratings.messages,
    )


_MOVIES = "lines MovieID::Title::Genres"
POSITION = 30
LAYOUTS = (
    Layout(
        "movielens-1m",
        "MovieLens-1M",
        (
            Part("users", ("users.dat",), "lines UserID::Gender::Age::Occupation::Zip-code"),
            Part(
                "ratings",
                ("ratings.dat", "user_movie_pairs.csv"),
                "lines UserID::MovieID::Rating::Timestamp, or the header user_id,movie_id and one row per rating",
            ),
            Part("movies", ("movies.dat",), _MOVIES, optional=True),
        ),
        _read_1m,
    ),
    Layout(
        "movielens-100k",
        "MovieLens-100K",
        (
            Part("ratings", ("u.data",), "lines user, item, rating, timestamp, separated by tabs"),
            Part("users", ("u.user",), "lines id|age|gender|occupation|zip"),
            Part("movies", ("u.item",), "lines id|title|date|video|url and 19 genre flags"),
        ),
        _read_100k,
    ),
)
