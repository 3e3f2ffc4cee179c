"""Bring a graph, see what is in it, and say what its columns are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

import uge_core.dashboard as ui

KINDS = ["csv", "tsv", "txt", "gz", "parquet", "xlsx", "npz", "mtx", "pt", "graphml", "gexf", "gml", "net", "json"]
SEPARATORS = {"": "by the first line", ",": "comma", ";": "semicolon", "\t": "tab", " ": "blank", "|": "bar |"}
ENCODINGS = {"": "UTF-8", "iso8859-1": "Latin-1", "cp1252": "Windows-1252", "utf-16": "UTF-16"}
SIDES = {
    "one": "all nodes are people",
    "items": "people and items; items stand in the edges alone",
    "column": "people and items in one file, distinguished by a column",
}
# Nothing chosen is no None: a field that begins with None comes back empty after a change of page.
HEADERS = {"": "a header unless like the others", "names": "names the columns", "row": "is a row like the others"}
SAID = {"": None, "names": True, "row": False}
UNKNOWN = {"refuse": "refuse the graph", "drop": "leave their edges out", "add": "add them, attributes unknown"}
ICONS = {"blocking": "block", "warning": "warning", "note": "info"}

plain = ui.plain_text
state = st.session_state
dark = st.context.theme.type == "dark"
store = ui.RunStore()
here = ui.uploads_folder(store)


@st.cache_resource(max_entries=2, ttl=1800, show_spinner="Reading the graph")
def graph_of(spec: str, stamp: str, root: str) -> ui.DataView:
    """The graph, read again when a file of it changes."""
    return ui.data_view(spec, ui.RunStore(root))


@st.cache_data(max_entries=8, show_spinner="Counting how edges weigh")
def weights_of(_view: ui.DataView, fingerprint: str, sensitive: tuple[str, ...], independence: bool) -> Any:
    return ui.weights_view(_view.graph, sensitive, independence=independence)


@st.cache_resource(max_entries=2, ttl=1800, show_spinner="Reading the tables")
def tables_of(
    folder: str,
    edges: str,
    nodes: str,
    separator: str,
    encoding: str,
    edges_header: bool | None,
    nodes_header: bool | None,
    stamp: str,
) -> tuple[ui.TablePair, ui.TableMap]:
    """The tables, and what their columns are by the dataset.yaml that is there, else probably."""
    pair = ui.read_pair(folder, edges, nodes, separator, encoding, edges_header=edges_header, nodes_header=nodes_header)
    return pair, ui.begin_mapping(pair, ui.written_mapping(folder))


@st.cache_data(max_entries=8, show_spinner="Looking at the columns")
def columns_with(_pair: ui.TablePair, made: ui.TableMap, stamp: str) -> tuple[ui.TableMap, dict[str, ui.ColumnValues]]:
    """The uses of the columns besides id and sides, and what stands in each."""
    made = ui.with_columns(_pair, made)
    return made, ui.column_values(_pair, [u.column for u in made.columns])


@st.cache_data(max_entries=8, show_spinner="Looking at the files")
def roles_of(folder: str, edges: str, nodes: str, stamp: str) -> tuple[str, str]:
    """The file of edges and that of nodes, by what is in the two."""
    return ui.table_roles(folder, edges, nodes)


@st.cache_data(max_entries=8, show_spinner="Joining the tables")
def joined(_pair: ui.TablePair, made: ui.TableMap, stamp: str) -> Any:
    return ui.join_counts(_pair, made)


def choose(spec: str, fetch: bool = False) -> None:
    """Another graph is shown; only a click fetches, an address never does."""
    spec = spec.strip()
    state["data_spec"], state["data_fetch"], state["data_mapping"] = spec, fetch, False
    # The Runs page begins with the graph that was looked at last.
    state["runs_graph"] = spec


def bring() -> None:
    """Writes what was dropped and shows it."""
    turn = state.get("data_turn", 0)
    files = [f for key in ("edges", "nodes") if (f := state.get(f"data_{key}_{turn}")) is not None]
    try:
        upload = ui.save_upload(state.get("data_name", ""), [(f.name, f) for f in files], store)
    except ui.UgeError as error:
        state["data_said"] = "error", str(error)
        return
    # New droppers: the browser's copies leave the memory.
    state["data_turn"] = turn + 1
    ui.set_fields(state, {"data_name": ""})
    state["data_said"] = "success", f"Kept in {upload.folder}: {', '.join(upload.files)}, {upload.size_words}."
    if len(files) == 2:
        roles = dict(zip(("edges", "nodes"), upload.written, strict=True))
        state.setdefault("data_roles", {})[str(upload.folder)] = roles
    choose(upload.spec)


def remove(name: str, spec: str) -> None:
    try:
        gone = ui.remove_upload(name, store)
        state["data_said"] = "success", f"Removed {len(gone)} files: {', '.join(gone)}."
        if state.get("data_spec") == spec:
            state["data_spec"] = ""
    except ui.UgeError as error:
        state["data_said"] = "error", str(error)


def sources() -> None:
    """The ways in."""
    files, place, name = st.tabs(["Two files", "A place on this machine", "By name"])
    with files:
        turn = state.get("data_turn", 0)
        left, right = st.columns(2)
        edges = left.file_uploader(
            "Edges: one row per link",
            type=KINDS,
            max_upload_size=ui.LARGEST_MB,
            key=f"data_edges_{turn}",
            help="A table with a header and two columns of ids; or a graph file (GraphML, GEXF, GML, Pajek, JSON, "
            "PyG's .pt) or a workbook with sheets called edges and nodes, which need no second one.",
        )
        nodes = right.file_uploader(
            "Nodes: one row per person",
            type=KINDS,
            max_upload_size=ui.LARGEST_MB,
            key=f"data_nodes_{turn}",
            help="A table with a header, a column of ids and one column per attribute.",
        )
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        left.text_input(
            "Name",
            key="data_name",
            persist_state="session",
            placeholder="like the file of edges",
            help="What the graph is called.",
        )
        right.button(
            "Load files",
            type="primary",
            icon=":material/upload:",
            on_click=bring,
            disabled=edges is None or (nodes is None and not ui.stands_alone(edges.name)),
            width="stretch",
            key="data_bring",
        )
        # Where people sign in, each reader sees all uploads.
        who = "the readers of this dashboard" if "is_logged_in" in st.user else "you alone"
        st.caption(
            f":material/lock: Uploads lie in `{here}`, readable by {who}, until you delete them. Nothing leaves "
            "this machine."
        )
    with place:
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        path = left.text_input(
            "Folder, FOLDER:NAME, file or dataset.yaml",
            key="data_path",
            persist_state="session",
            placeholder="/path/to/my-graph",
            help="Read where it lies: nothing is copied or changed. FOLDER:NAME is one graph of a folder with several.",
        )
        right.button(
            "Open",
            type="primary",
            icon=":material/folder_open:",
            on_click=choose,
            args=(path,),
            width="stretch",
            disabled=not path.strip(),
            key="data_open_path",
        )
    with name:
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        asked = left.text_input(
            "Name of a graph",
            key="data_asked",
            persist_state="session",
            placeholder="sample:town, sample:titles or pyg:LastFMAsia",
            help="Samples come with the package. pyg:NAME is fetched from its public host when you press Open, and "
            "kept in the store.",
        )
        right.button(
            "Open",
            type="primary",
            icon=":material/folder_open:",
            on_click=choose,
            args=(asked, True),
            width="stretch",
            disabled=not asked.strip(),
            key="data_open_name",
        )
        with st.container(horizontal=True):
            for spec, label in ui.known_graphs(store).items():
                if spec.startswith("sample:"):
                    st.button(label, on_click=choose, args=(spec,), key=f"data_{spec}", icon=":material/science:")


def kept() -> None:
    """The uploads, each with what deleting it would remove."""
    there = ui.list_uploads(store)
    if not there:
        return
    with st.expander(f"Uploads ({len(there)})", icon=":material/folder:"):
        for upload in there:
            words, buttons = st.columns([4, 2], vertical_alignment="center")
            words.markdown(f"**{plain(upload.name)}** {plain(', '.join(upload.files))}, {upload.size_words}")
            with buttons.container(horizontal=True, horizontal_alignment="right"):
                st.button(
                    "Show",
                    key=f"data_show_{upload.name}",
                    on_click=choose,
                    args=(upload.spec,),
                    icon=":material/visibility:",
                )
                with st.popover("Delete", icon=":material/delete:"):
                    st.write("This removes for good:")
                    st.markdown("\n".join(f"- {plain(line)}" for line in ui.upload_removal(upload.name, store)))
                    st.button(
                        "Delete for good",
                        key=f"data_delete_{upload.name}",
                        on_click=remove,
                        args=(upload.name, upload.spec),
                        icon=":material/delete_forever:",
                    )


def said() -> None:
    """What the last button did."""
    kind, text = state.pop("data_said", ("", ""))
    if kind == "error":
        st.error(f"**Blocking.** {plain(text)}", icon=":material/block:")
    elif kind:
        st.success(plain(text), icon=":material/check:")


def notes(view: ui.DataView) -> None:
    st.subheader("Messages")
    if not view.notes:
        st.caption("Nothing stands out in these files.")
    for note in view.notes:
        with st.container(border=True):
            count = f" · {note.count:,}" if note.count else ""
            st.markdown(f":material/{ICONS[note.level]}: **{note.level.capitalize()}{count}.** {plain(note.text)}")
            if note.examples:
                st.caption(f"First: {plain('; '.join(note.examples))}")
            if note.remedy:
                st.caption(f":material/build: {plain(note.remedy)}")


def written_at(folder: Path) -> int:
    """When the dataset.yaml was written, 0 without one: the form begins anew with each."""
    path = folder / "dataset.yaml"
    return path.stat().st_mtime_ns if path.is_file() else 0


def mapping(folder: Path, recognised: bool) -> None:
    """Says what the columns are, shows what would follow, and writes it down."""
    files = ui.readable_files(folder)
    written = ui.written_mapping(folder)
    dropped = state.get("data_roles", {}).get(str(folder)) or {"edges": files[0], "nodes": files[1]}
    roles = dropped
    if written is None and {dropped["edges"], dropped["nodes"]} <= set(files):
        changed = " ".join(f"{f} {(folder / f).stat().st_mtime_ns}" for f in dropped.values())
        roles = dict(
            zip(("edges", "nodes"), roles_of(str(folder), dropped["edges"], dropped["nodes"], changed), strict=True)
        )
    if roles != dropped and str(folder) in state.get("data_roles", {}):
        st.info(
            f"{plain(roles['edges'])} holds the edges and {plain(roles['nodes'])} the nodes, by what is in them: they were "
            "dropped the other way round.",
            icon=":material/swap_horiz:",
        )

    def first(options: Any, name: str) -> int:
        # What was written, else what is in the files.
        value = getattr(written, name, None) or roles.get(name)
        return list(options).index(value) if value in options else 0

    key = f"data_map_{folder}_{written_at(folder)}"
    left, middle, right, last = st.columns(4)
    edges = left.selectbox(
        "File of edges",
        files,
        first(files, "edges"),
        format_func=ui.visible,
        key=f"{key}_edges",
        persist_state="session",
    )
    others = [f for f in files if f != edges]
    nodes = middle.selectbox(
        "File of nodes",
        others,
        first(others, "nodes"),
        format_func=ui.visible,
        key=f"{key}_nodes",
        persist_state="session",
    )
    separator = right.selectbox(
        "Separator",
        list(SEPARATORS),
        first(SEPARATORS, "separator"),
        format_func=SEPARATORS.__getitem__,
        key=f"{key}_separator",
        persist_state="session",
    )
    encoding = last.selectbox(
        "Encoding",
        list(ENCODINGS),
        first(ENCODINGS, "encoding"),
        format_func=ENCODINGS.__getitem__,
        key=f"{key}_encoding",
        persist_state="session",
    )
    left, right = st.columns(2)
    chosen = [
        column.selectbox(
            f"First line of the {what}",
            list(HEADERS),
            list(SAID.values()).index(getattr(written, f"{what}_header", None)),
            format_func=HEADERS.__getitem__,
            key=f"{key}_{what}_header",
            persist_state="session",
            help="Columns of a file without a header are called 1, 2, 3.",
        )
        for column, what in ((left, "edges"), (right, "nodes"))
    ]
    headers = [SAID[what] for what in chosen]
    stamp = f"{folder} {written_at(folder)} {separator} {encoding} {headers} " + " ".join(
        f"{f} {(folder / f).stat().st_mtime_ns}" for f in (edges, nodes)
    )
    try:
        pair, guessed = tables_of(str(folder), edges, nodes, separator, encoding, headers[0], headers[1], stamp)
    except ui.UgeError as error:
        st.error(f"**Blocking.** {plain(str(error))}", icon=":material/block:")
        return
    key = f"{key}_{edges}_{nodes}_{separator}_{encoding}_{headers}"
    ends, ids = list(pair.edges.names), list(pair.nodes.names)
    left, middle, right, last = st.columns(4)
    source = left.selectbox(
        "Source column",
        ends,
        ends.index(guessed.source),
        format_func=ui.visible,
        key=f"{key}_source",
        persist_state="session",
        help="One end of an edge; the person where there are items.",
    )
    target = middle.selectbox(
        "Target column",
        ends,
        ends.index(guessed.target),
        format_func=ui.visible,
        key=f"{key}_target",
        persist_state="session",
        help="The other end.",
    )
    ident = right.selectbox(
        "Id column of the nodes",
        ids,
        ids.index(guessed.id),
        format_func=ui.visible,
        key=f"{key}_id",
        persist_state="session",
        help="What source and target refer to, compared as text.",
    )
    weights = ["", *ends]
    weight = last.selectbox(
        "Weight column",
        weights,
        weights.index(guessed.weight or ""),
        key=f"{key}_weight",
        persist_state="session",
        format_func=lambda c: ui.visible(c or "none"),
        help="How much each edge counts.",
    )
    left, middle, right, last = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
    sides: Any = left.selectbox(
        "Sides",
        list(SIDES),
        list(SIDES).index(guessed.sides),
        format_func=SIDES.__getitem__,
        key=f"{key}_sides",
        persist_state="session",
    )
    column = users = ""
    if sides == "column":
        two = [c for c in ids if c != ident]
        column = middle.selectbox(
            "Column that tells",
            two,
            two.index(guessed.side_column) if guessed.side_column in two else 0,
            format_func=ui.visible,
            key=f"{key}_side",
            persist_state="session",
        )
        values = sorted(pair.nodes.frame[column].dropna().unique()[:50])
        users = right.selectbox(
            "Its value for people",
            values,
            values.index(guessed.users) if guessed.users in values else 0,
            format_func=ui.visible,
            key=f"{key}_users",
            persist_state="session",
        )
    directed = last.checkbox(
        "Directed",
        guessed.directed,
        key=f"{key}_directed",
        persist_state="session",
        help="Each row runs from source to target.",
    )
    made = replace(
        guessed,
        source=source,
        target=target,
        id=ident,
        weight=weight or None,
        sides=sides,
        side_column=column,
        users=users,
        directed=directed,
        separator=separator,
        encoding=encoding,
        edges_header=headers[0],
        nodes_header=headers[1],
    )
    if guessed.doubt and (source, target, ident) == (guessed.source, guessed.target, guessed.id):
        st.warning(plain(guessed.doubt), icon=":material/help:")
    made, seen = columns_with(pair, made, stamp)
    made = replace(made, columns=columns_of(made, seen, f"{key}_{ident}_{column}"))
    left, middle, right, last = st.columns(4)
    policies = [p for p in UNKNOWN if p != "add" or sides != "column"]  # no column tells the side of an added node
    made = replace(
        made,
        unknown_nodes=last.selectbox(
            "Nodes without a row",
            policies,
            policies.index(guessed.unknown_nodes) if guessed.unknown_nodes in policies else 0,
            format_func=UNKNOWN.__getitem__,
            key=f"{key}_unknown_{len(policies)}",
            persist_state="session",
            help="What happens to edges that name a node which the file of nodes lacks: they block the graph, are left "
            "out with a warning, or their nodes join the graph with unknown attributes.",
        ),
        name=left.text_input(
            "Name of the graph", guessed.name, key=f"{key}_name", persist_state="session", placeholder=folder.name
        ).strip(),
        licence=middle.text_input(
            "Licence", guessed.licence, key=f"{key}_licence", persist_state="session", placeholder="CC-BY-4.0"
        ).strip(),
        origin=right.text_input(
            "Where the data are from",
            guessed.origin,
            key=f"{key}_origin",
            persist_state="session",
            placeholder="survey of 2024",
        ).strip(),
    )
    preview(pair, made, stamp)
    ours = folder.is_relative_to(here)
    verb = "Write" if not recognised or ours else "Write into your folder"
    st.button(
        f"{verb} dataset.yaml and read the graph again",
        type="primary",
        icon=":material/save:",
        on_click=write,
        args=(folder, made, ours),
        key="data_write",
    )
    st.caption(f"It goes to {plain(str(folder / 'dataset.yaml'))}; the tables stay as they are.")


def columns_of(made: ui.TableMap, seen: dict[str, ui.ColumnValues], key: str) -> tuple[ui.Use, ...]:
    """The table in which the use of each column is said."""
    if not made.columns:
        st.caption("The file of nodes has no column besides the id.")
        return ()
    codes = [f"{u.column}: {ui.codes_text(u.missing)}" for u in made.columns if u.missing]
    begun = made.columns
    if codes and not st.checkbox(
        f"These cells mean that nothing was given: {plain('; '.join(codes))}",
        value=True,
        key=f"{key}_codes",
        help="They are counted as missing, not as groups or numbers; each can be changed under Missing codes.",
        persist_state="session",
    ):
        key += "_values"
        begun = tuple(replace(u, missing=()) for u in begun)
    # The editor forgets what was typed when the page is left, and shows what follows from it only as another table: so
    # what it begins with, and what was typed since, are kept here.
    edits = state.setdefault("data_edits", {})
    if [u.column for u in edits.get(key, {}).get("now", ())] != [u.column for u in begun]:
        edits[key] = {"from": begun, "now": begun, "turn": 0, "said": ()}
    kept: dict[str, Any] = edits[key]
    uses: tuple[ui.Use, ...] = kept["now"]
    editor = f"{key}_columns_{kept['turn']}"
    if editor not in state:
        kept["from"] = kept["now"]
    config = st.column_config
    st.data_editor(
        [
            {
                "Column": ui.visible(u.column),
                "Values": seen[u.column].different,
                "Most frequent": ui.visible(seen[u.column].commonest),
                "Use as": u.use,
                "Sensitive": u.sensitive,
                "Missing codes": ui.codes_text(u.missing),
                "Bins": u.bins,
            }
            for u in kept["from"]
        ],
        key=editor,
        hide_index=True,
        disabled=["Column", "Values", "Most frequent"],
        column_config={
            "Column": config.TextColumn(pinned=True),
            "Use as": config.SelectboxColumn(
                options=["attribute", "feature", "ignored"],
                required=True,
                help="attribute: people are compared by it; feature: a number that a model may read.",
            ),
            "Sensitive": config.CheckboxColumn(help="What an audit begins with; a sensitive column is an attribute."),
            "Missing codes": config.TextColumn(
                help="Cells that mean 'not given' besides the empty one, with commas: 0, -1, NA"
            ),
            "Bins": config.TextColumn(
                help="Groups of a number: quantile:5, width:10, or where groups begin: 18, 35, 50"
            ),
        },
        on_change=edited,
        args=(key, editor, seen),
    )
    for words in kept["said"]:
        st.markdown(f":material/info: {plain(words)}")
    decimal = [u.column for u in uses if seen[u.column].decimal and u.use != "attribute"]
    if decimal:
        st.caption(
            f"Decimal numbers are no attributes as they are: {plain(', '.join(decimal))}. To compare people by one, use it "
            "as an attribute with bins, such as quantile:5."
        )
    return uses


def edited(key: str, editor: str, seen: dict[str, ui.ColumnValues]) -> None:
    """Takes over what was typed, with what follows from it."""
    kept = state["data_edits"][key]
    typed = list(kept["from"])
    for row, cells in state[editor]["edited_rows"].items():
        use = typed[int(row)]
        typed[int(row)] = replace(
            use,
            use=cells.get("Use as", use.use),
            sensitive=bool(cells.get("Sensitive", use.sensitive)),
            missing=ui.missing_codes(cells["Missing codes"] or "") if "Missing codes" in cells else use.missing,
            bins=(cells["Bins"] or "") if "Bins" in cells else use.bins,
        )
    kept["now"], kept["said"] = ui.consistent_uses(kept["now"], typed, seen)
    if kept["now"] != tuple(typed):
        kept["turn"] += 1


def preview(pair: ui.TablePair, made: ui.TableMap, stamp: str) -> None:
    """How the tables meet, their first rows, and the file that would be written."""
    counts = joined(pair, replace(made, columns=(), unknown_nodes="", name="", licence="", origin=""), stamp)
    icon = "check_circle" if counts.joined == counts.ids and not counts.repeated else "warning"
    st.markdown(f":material/{icon}: **{counts.joined:,} of {counts.ids:,} ids in the edges are in the nodes.**")
    if counts.orphans:
        then = {
            "drop": "Edges to them are left out, and counted in a warning.",
            "add": "They join the graph as nodes whose attributes are unknown.",
        }.get(
            made.unknown_nodes,
            "Edges to them block the graph: choose another id column (add one where nodes are known by their row "
            "alone), add the nodes, remove the edges, or choose otherwise under Nodes without a row.",
        )
        ids = f"{counts.orphans:,} {'id' if counts.orphans == 1 else 'ids'}"
        st.caption(f"{ids} without a row in the nodes, first: {plain(', '.join(counts.first))}. {then}")
    if counts.repeated:
        st.caption(f"{counts.repeated:,} rows of the nodes have no id of their own: choose another id column.")
    if counts.lonely:
        st.caption(f"{counts.lonely:,} nodes have no edge.")
    left, right = st.columns(2)
    for side, table, what in ((left, pair.edges, "edges"), (right, pair.nodes, "nodes")):
        side.caption(f"First rows of {plain(table.file)}, {len(table):,} in all")
        side.dataframe(ui.visible_cells(table.frame.head(5)), hide_index=True, alt=f"First rows of the file of {what}")
    with st.expander("dataset.yaml", icon=":material/description:"):
        try:
            st.code(ui.card_text(made), language="yaml")
        except ui.UgeError as error:
            st.warning(plain(str(error)), icon=":material/info:")


def write(folder: Path, made: ui.TableMap, ours: bool) -> None:
    try:
        path = ui.write_card(folder, made, may_replace=ours)
    except ui.UgeError as error:
        state["data_said"] = "error", str(error)
        return
    state["data_said"] = "success", f"Wrote {path} and read the graph through it."
    choose(str(folder))


def groups(view: ui.DataView) -> None:
    st.subheader(
        "Group sizes",
        help="How many people each group has, before anything is measured on them. Small groups make every figure "
        "about them a matter of chance.",
    )
    share: Any = st.column_config.NumberColumn
    st.dataframe(
        ui.visible_cells(view.overview),
        hide_index=True,
        column_config={
            "Missing, share": share(format="percent"),
            "Edges within a group": st.column_config.TextColumn(
                help="Of the edges whose two ends are known. Above chance, people of one group seek each other."
            ),
            "By chance": st.column_config.TextColumn(help="What a graph whose edges ignore the attribute would have."),
            "n edges": share(format="localized"),
        },
        alt="Attributes with their groups, missing values and edges within a group",
    )
    beside = st.container(horizontal=True)
    views = [ui.groups_view(view.graph, name, store) for name in view.attributes]
    for i, sizes in enumerate(views):
        with beside.container(width=450):  # two in a row where there is room
            st.markdown(f"**{plain(sizes.title)}**")
            st.plotly_chart(
                ui.groups_figure(sizes, dark=dark), config=ui.CHART_CONFIG, alt=sizes.alt, key=f"data_groups_{i}"
            )
            st.caption(plain(sizes.caption))
    st.download_button(
        "Download CSV",
        lambda: ui.groups_csv(views),
        file_name="group-sizes.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key="data_groups_csv",
    )


def edges_between(view: ui.DataView) -> None:
    st.subheader(
        "Edges between groups",
        help="Observed edges of each pair of groups over those that "
        "chance would give if the attribute had no influence.",
    )
    name = st.pills(
        "Attribute",
        list(view.attributes),
        default=next(iter(view.sensitive or view.attributes)),
        format_func=plain,
        key="data_attribute",
        persist_state="session",
        required=True,
    )
    mixing = ui.mixing_view(view.graph, name, store)
    st.markdown(f"**{plain(mixing.title)}**")
    st.plotly_chart(ui.mixing_map(mixing, dark=dark), config=ui.CHART_CONFIG, alt=mixing.alt, key=f"data_mixing_{name}")
    st.caption(plain(mixing.caption))
    with st.expander("Show table", icon=":material/table:"):
        st.dataframe(
            ui.visible_cells(mixing.table),
            hide_index=True,
            alt=mixing.title,
            column_config={"expected": st.column_config.NumberColumn(format="%.1f")},
        )
    st.download_button(
        "Download CSV",
        mixing.csv,
        file_name=f"{name}-edges.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key="data_mixing_csv",
    )


def weights(view: ui.DataView) -> None:
    st.subheader(
        "Edge weights",
        help="R~/R, what UGE-W multiplies each observed edge's loss by: its chance without the sensitive attributes "
        "over its chance with them.",
    )
    top = st.container()
    row = st.container(horizontal=True, vertical_alignment="bottom")
    chosen = row.multiselect(
        "Sensitive attributes",
        list(view.sensitive),
        default=list(view.sensitive)[:1],
        format_func=ui.visible,
        key="data_sensitive",
        persist_state="session",
        help="Whose influence the weights take out; all other attributes may go on shaping links.",
    )
    alone = row.toggle(
        "One-attribute ratios",
        key="data_independence",
        persist_state="session",
        help="The product of each attribute's own ratio (independence=true in training): for many attributes, whose "
        "pairs of groups hold few edges.",
    )
    if not chosen:
        st.info("Choose the attributes whose influence the weights take out.", icon=":material/info:")
        return
    try:
        ratios = weights_of(view, view.graph.fingerprint, tuple(chosen), alone)
    except ui.UgeError as error:
        top.error(plain(str(error)), icon=":material/error:")
        return
    if ratios.fault:
        top.error(plain(ratios.fault), icon=":material/error:")
    elif ratios.doubt:
        top.warning(plain(ratios.doubt), icon=":material/warning:")
    st.markdown(f"**{plain(ratios.title)}**")
    with st.container(horizontal=True, gap="medium"):
        for label, value, meaning in ratios.facts:
            st.metric(label, value, help=meaning, width="content")
    st.plotly_chart(ui.weights_figure(ratios, dark=dark), config=ui.CHART_CONFIG, alt=ratios.alt, key="data_weights")
    for words in (ratios.caption, *ratios.remarks):
        st.caption(plain(words))
    with st.expander("Show table", icon=":material/table:"):
        st.dataframe(ui.visible_cells(ratios.table), hide_index=True, alt=ratios.title)
    st.download_button(
        "Download CSV",
        ratios.csv,
        file_name="edge-weights.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key="data_weights_csv",
    )


def show(view: ui.DataView) -> None:
    """All that is known of a graph."""
    head = st.container(horizontal=True, vertical_alignment="bottom")
    head.header(plain(view.name))
    if head.button("Train on it", icon=":material/model_training:", key="data_train"):
        state["runs_graph"] = view.spec
        st.switch_page("runs.py")
    with st.container(horizontal=True, gap="medium"):
        for label, value in view.facts:
            st.metric(label, value, width="content")
    st.caption(plain(view.kind))
    notes(view)
    with st.expander(f"Columns ({len(view.columns)})", icon=":material/view_column:"):
        st.dataframe(ui.visible_cells(view.columns), hide_index=True, alt="Columns of the files and their roles")
    folder = ui.mapping_folder(view.spec)
    if folder is not None:
        with st.expander("Read the columns otherwise", icon=":material/tune:"):
            if st.toggle("Show the mapping", key="data_mapping", persist_state="session"):
                mapping(folder, recognised=True)
    if view.attributes:
        groups(view)
        edges_between(view)
    if view.sensitive:
        weights(view)


def read_it(name: str) -> None:
    try:
        ui.enqueue_reading(name, store)
    except ui.UgeError as error:
        state["data_said"] = "error", str(error)


def read_progress(name: str) -> None:
    """How far the reading of a file is; when it ends, the page is drawn again, once."""
    card = ui.reading(name, store)
    if card is None or not card.can_cancel:
        st.rerun()
    facts = " · ".join(f"{label} {value}" for label, value in card.facts)
    st.progress(card.share or 0.0, text=plain(" · ".join(filter(None, (card.stage, facts)))))
    st.button("Cancel", key="data_read_cancel", icon=":material/stop:", on_click=ui.cancel, args=(card.id, store))


def torch_file(name: str) -> None:
    """A file of torch: a process of its own reads it, as the dashboard does not load torch."""
    card = ui.reading(name, store)
    if card and card.can_cancel:
        st.fragment(run_every=1)(read_progress)(name)
        return
    if card and card.reason:
        st.error(f"**Blocking.** {plain(card.reason)}", icon=":material/block:")
        st.caption(f":material/build: {plain(card.remedy or '')}")
    st.info(
        "A file of torch. A process of its own reads it, "
        "tensors alone: objects in it are never loaded. The numbers are kept "
        "in the store beside the runs, until the upload is deleted or the store is purged.",
        icon=":material/info:",
    )
    st.button(
        "Read the file", type="primary", icon=":material/play_arrow:", on_click=read_it, args=(name,), key="data_read"
    )


st.title("Data")
st.write("Bring a graph, see what is in it before anything is measured, and say what its columns are.")
with st.container(border=True):
    sources()
kept()
said()
spec = state.get("data_spec", st.query_params.get("graph", ""))
if spec:
    st.query_params["graph"] = spec
elif "graph" in st.query_params:
    del st.query_params["graph"]
if not spec:
    st.info("No graph is loaded yet. Drop two files, name a place, or begin with a sample.", icon=":material/info:")
else:
    state["data_spec"] = spec
    stamp = view = None
    try:
        fetch = state.pop("data_fetch", False)
        with st.spinner(
            "Looking for the graph; one that is not here yet is fetched" if fetch else "Looking for the graph"
        ):
            stamp = ui.data_stamp(spec, store.root, may_fetch=fetch)
        view = graph_of(spec, stamp, str(store.root))
    except ui.NotReadYet:
        torch_file(spec)
    except ui.UgeError as error:
        text, _, more = str(error).partition("\n")
        if isinstance(error, ui.NotRecognised) and ui.mapping_folder(spec) is not None:
            st.info("These files fit no known layout: say below what their columns are.", icon=":material/info:")
        else:
            st.error(f"**Blocking.** {plain(text)}", icon=":material/block:")
            if more:
                st.caption(f":material/terminal: {plain(more)}")
    if view is not None:
        show(view)
    elif not spec.endswith(".pt") and (folder := ui.mapping_folder(spec)) is not None:
        st.header("What the columns are")
        st.write(
            "Guessed from the names and from the ids that both files share. Change what is wrong, then write it down."
        )
        mapping(folder, recognised=stamp is not None)
