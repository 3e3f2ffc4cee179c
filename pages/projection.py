"""What do the embeddings of two runs look like, and what holds beyond the look?"""

from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

import uge_core.dashboard as ui

plain = ui.plain_text
state = st.session_state
WHATIF = Path(__file__).with_name("whatif.py")
# Prose as wide as it is read; columns below one another where the sidebar leaves them too little; labels whole.
LOOK = """<style>
[data-testid=stMain] :is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer]) p { max-width: 75ch; }
@media (max-width: 1000px) {
  [data-testid=stMain] [data-testid=stColumn] { min-width: 100%; }
  [data-testid=stMain] [data-testid=stColumn] [data-testid=stColumn] { min-width: 8rem; }
}
:is([class*=st-key-projection_found]) button :is(div, span, p) {
  white-space: normal; text-align: left; overflow: visible;
}
</style>"""
ICONS = {
    "more than chance": "visibility",
    "not distinguishable from chance": "drag_handle",
    "not enough evidence": "question_mark",
}

st.html(LOOK)
st.title("Projection")
st.write("What do the embeddings of two runs look like, and what holds beyond the look?")

store = ui.RunStore()
if not state["frame_before"]:
    st.info("No audited run yet. The Overview page shows the command that makes a first one.", icon=":material/info:")
    st.stop()
if not state["frame_attribute"]:
    st.info("The audited runs' data have no attribute of people, so there are no groups.", icon=":material/info:")
    st.stop()
before, after = state["frame_before"], state["frame_after"]


@st.cache_resource(max_entries=2, ttl=900, show_spinner="Reading the graph")
def graph_of(_run_id: str, data: str, root: str) -> Any:
    return ui.projection_graph(ui.RunStore(root), _run_id)


def select(nodes: list[int], source: str | None = None) -> None:
    """Keeps who is selected; the picture it was done in shows it by itself, and is not drawn anew."""
    state["projection_nodes"] = nodes
    for letter in {"A", "B"} - {source}:
        state[f"projection_shown_{letter}"] = nodes


def lifted_out() -> None:
    """Both pictures are drawn anew: both show the selection."""
    select(state.get("projection_nodes", []))


def take(letter: str, key: str) -> None:
    """Copies a lasso's people at once, as the chart forgets it when it is drawn anew."""
    nodes = list(dict.fromkeys(int(p["customdata"]) for p in state[key]["selection"]["points"]))
    if len(nodes) == 1:
        # A click is about one person; what was selected before stays.
        mark(nodes[0])
    elif nodes:
        select(nodes, letter)


def mark(node: int | None) -> None:
    """Somebody is looked at, or nobody any more."""
    state["projection_person"] = node
    lifted_out()


def send(ids: list[str]) -> None:
    """To What-if, with these people."""
    state["whatif_sent"] = ids
    # With an address of its own: that of this page holds what its controls are bound to, which cannot be cleared.
    st.switch_page(str(WHATIF), query_params={})


def choose_groups() -> None:
    select(ui.selected_groups(data, attribute, state["projection_groups"]))


def choose_ids() -> None:
    nodes, words = ui.selected_ids(data, state["projection_ids"])
    state["projection_words"] = words
    select(nodes)


def jobs() -> None:
    """The open job of this page; when it ends, the page is drawn again."""
    cards = [card for card in ui.jobs_view(store).open if card.projects]
    if [c.id for c in cards] != state.get("projection_jobs"):
        state["projection_jobs"] = [c.id for c in cards]
        st.rerun()
    for card in cards:
        left, right = st.columns([5, 1], vertical_alignment="center")
        facts = " · ".join(f"{name} {value}" for name, value in card.facts)
        left.progress(card.share or 0.0, text=plain(" · ".join(filter(None, (card.title, card.stage, facts)))))
        if right.button("Cancel", key=f"projection_cancel_{card.id}", icon=":material/stop:"):
            ui.cancel(card.id, store)
        if card.note:
            st.caption(f":material/info: {card.note}")


def full_space(side: Any) -> None:
    """What holds in all dimensions, under the picture."""
    figures = ui.full_space(store, data, side.run_id, attribute)
    for column, figure in zip(st.columns(len(figures)), figures, strict=True):
        column.metric(figure.label, figure.value, help=plain(figure.help))
        column.caption(f":material/{ICONS[figure.verdict]}: {figure.verdict}; {plain(figure.words)}")


def selection() -> None:
    """Who is selected, against everybody drawn."""
    nodes = state.get("projection_nodes", [])
    st.header("Selection")
    with st.expander("Select without a mouse", icon=":material/keyboard:"):
        left, right = st.columns(2)
        left.multiselect(
            f"Groups of {plain(attribute)}",
            data.graph.attribute(attribute).labels,
            format_func=ui.visible,
            key="projection_groups",
            on_change=choose_groups,
            help="Everybody drawn who has one of these values.",
        )
        right.text_area(
            "Ids",
            key="projection_ids",
            on_change=choose_ids,
            height=68,
            help="The ids of your own files, with commas, blanks or lines between them.",
        )
        if state.get("projection_words"):
            st.caption(plain(state["projection_words"]))
    if not nodes:
        st.caption(
            "Choose the lasso or the box above a picture and draw around people to compare them with everybody. "
            "A click is about one person."
        )
        return
    view = ui.selection_view(data, nodes, attribute)
    st.markdown(plain(view.sentence))
    share = st.column_config.NumberColumn
    st.dataframe(
        ui.visible_cells(view.table),
        hide_index=True,
        alt=view.sentence,
        column_config={
            "Share of the selected": share(format="percent"),
            "Share of everybody": share(format="percent"),
            "p": share("p (Holm)", format="%.2g"),
        },
    )
    st.caption(plain(view.caption))
    # A plain table, as the other kind offers its rows as a file: whose value is what is not exported. It takes the
    # page's whole width, as words wrap in it.
    people = ui.visible_cells(view.people).map(lambda cell: plain(str(cell)))
    st.table(people, hide_index=True, height=300, alt="The people selected")
    more = (
        f"The first {len(view.people):,} of {len(view.ids):,}."
        if len(view.ids) > len(view.people)
        else f"All {len(view.ids):,}."
    )
    st.caption(f"{more} The list is not exported.")
    with st.container(horizontal=True):
        st.button("Clear the selection", key="projection_clear", icon=":material/close:", on_click=select, args=([],))
        if st.button("Send to What-if", key="projection_send", icon=":material/arrow_forward:"):
            send(list(view.ids))


def found(suggestion: Any) -> None:
    """What was meant is marked or selected, and the list of suggestions closed."""
    if suggestion.node is None:
        select(list(suggestion.nodes))
    else:
        mark(suggestion.node)
    ui.set_fields(state, {"projection_find": ""})
    state["projection_found"] = True


@st.fragment
def find() -> None:
    """A person by id or by values, as they are typed."""
    with ui.sending(state, ("projection_find",)):
        text = st.text_input(
            "Find a person",
            key="projection_find",
            type="search",
            live="300ms",
            max_chars=200,
            placeholder="an id, or values such as those of the legend",
            help="A part of an id, or one or more values. The person is marked in both pictures. A click on a point does "
            "the same.",
        )
    suggestions, words = ui.people_search(data, text or "")
    with st.container(horizontal=True, gap="small"):
        for number, suggestion in enumerate(suggestions):
            icon = ":material/person:" if suggestion.node is not None else ":material/group:"
            st.button(
                plain(suggestion.label), key=f"projection_found_{number}", icon=icon, on_click=found, args=(suggestion,)
            )
    if words:
        st.caption(plain(words))
    if state.pop("projection_found", False):
        st.rerun()


def person(view: Any) -> None:
    """The people nearest to somebody in all dimensions of each run."""
    st.header(f"Nearest to {plain(view.id)}")
    for (letter, side), column in zip(zip("AB", view.sides, strict=False), st.columns(2), strict=False):
        with column:
            st.markdown(f"**{letter}: {len(side.nodes)} nearest of all people**")
            # A plain table: whose value is what is not offered as a file.
            cells = ui.visible_cells(side.table).map(
                lambda cell: f"{cell:.3f}" if isinstance(cell, float) else plain(str(cell))
            )
            st.table(cells, hide_index=True, alt=f"The people nearest to {ui.visible(view.id)} in run {letter}")
            st.caption(plain(side.caption))
    if view.shared:
        st.markdown(plain(view.shared))
    st.caption("Rings in the pictures mark them. Nearness is no friendship, and the lists are not exported.")


@st.fragment
def pictures(view: ui.ProjectionView) -> None:
    """The pictures, the slider and the selection; only this part runs when one of them changes."""
    dark = st.context.theme.type == "dark"
    lam = view.lam
    if len(view.after) > 1:
        key = "projection_lambda"
        moved = state.get("projection_after", after) != after
        asked = key not in state and key in st.query_params
        if moved or (not asked and state.get(key) not in view.after):
            # Run B begins at its own lambda, whatever the address says of the one before.
            ui.set_fields(state, {key: lam if lam in view.after else next(iter(view.after))})
        state["projection_after"] = after
        with ui.sending(state, (key,)):
            lam = st.select_slider(
                "λ of run B",
                list(view.after),
                key=key,
                format_func=lambda v: f"{v:g}",
                on_change=lifted_out,
                bind="query-params",
                help="Moves B along its trained values. Arrow keys move it.",
            )
    sides = {"A": view.before, "B": view.after.get(lam)}
    looked_at = state.get("projection_person")
    shown = [side.run_id for side in sides.values() if side is not None]
    somebody = None if looked_at is None else ui.person_view(store, data, looked_at, shown)
    near = {} if somebody is None else {side.run_id: side.nodes for side in somebody.sides}
    if somebody is not None:
        st.markdown(f":material/person: {plain(somebody.sentence)}")
        if somebody.note:
            st.caption(f":material/info: {plain(somebody.note)}")
        with st.container(horizontal=True):
            st.button("Unmark", key="projection_unmark", icon=":material/close:", on_click=mark, args=(None,))
            if st.button("Edit in What-if", key="projection_edit", icon=":material/edit_note:"):
                send([somebody.id])
    for (letter, side), column in zip(sides.items(), st.columns(2), strict=True):
        with column:
            if side is None:
                continue
            colours = ui.colouring(data, color, store.load(side.run_id))
            st.markdown(f"**{letter}: {plain(side.label)}**")
            key = f"projection_{letter}"
            st.plotly_chart(
                ui.projection_figure(
                    data,
                    side,
                    colours,
                    view.reach,
                    selected=state.get(f"projection_shown_{letter}", []),
                    person=looked_at,
                    near=near.get(side.run_id, ()),
                    density=density,
                    dark=dark,
                ),
                config=ui.PROJECTION_CONFIG,
                alt=ui.projection_alt(data, side, colours),
                key=key,
                on_select=partial(take, letter, key),
                selection_mode=("points", "lasso", "box"),
            )
            full_space(side)
    st.caption(plain(view.caption))
    if density:
        st.caption(
            "Contours: equal density of people, smoothed, from a tenth of "
            "the highest on; as little evidence as the points."
        )
    st.caption(plain(view.limits))
    if color.startswith("confidence"):
        st.caption(plain(ui.CONFIDENCE_NOTE))
    if somebody is not None:
        person(somebody)
    selection()


graph = graph_of(before, state["frame_data"], str(store.root))
sizes = ui.projection_sizes(graph)
left, middle, right, last = st.columns([4, 4, 3, 2], vertical_alignment="bottom")
methods = ui.projection_methods()
method = left.segmented_control(
    "Projection",
    list(methods),
    default="pca",
    required=True,
    format_func=methods.__getitem__,
    key="projection",
    bind="query-params",
    on_change=lifted_out,
    help="PCA is there at once; the others are made by a job and kept with their runs.",
)
size = right.selectbox(
    "People drawn",
    list(sizes),
    index=min(1, len(sizes) - 1),
    format_func=sizes.__getitem__,
    key=f"projection_size_{state['frame_data']}",
    on_change=lifted_out,
    help="The same people for every run of these data.",
)
density = last.toggle(
    "Contours",
    key="projection_density",
    bind="query-params",
    on_change=lifted_out,
    help="Lines of equal density over the points, where many people lie upon each other.",
)
data = ui.projection_data(graph, size)
ran = [i for i in (before, after) if i]
colors = ui.colour_choices(data, store, ran)
default = f"attribute:{state['frame_attribute']}"
if state.get("projection_color") not in colors or state.get("projection_colored") != default:
    ui.set_fields(state, {"projection_color": default if default in colors else next(iter(colors))})
state["projection_colored"] = default
color = middle.selectbox(
    "Colour",
    list(colors),
    key="projection_color",
    format_func=lambda c: ui.visible(colors[c]),
    on_change=lifted_out,
    help="Numbers and selection are about the attribute chosen here, else about the audited one.",
)
attribute = color.partition(":")[2] or state["frame_attribute"]
# What one graph's people were called means nothing in another sample.
if state.get("projection_of") != (state["frame_data"], size):
    state["projection_of"] = (state["frame_data"], size)
    select([])
    state["projection_person"] = None

view = ui.projection_view(store, data, before=before, after=after, method=method)
slow = ui.slow_projections()
if method in slow and view.missing:
    of = f"{view.missing} of {len(view.wanted)} runs have no {slow[method]} of {data.sample.words} yet"
    takes = ui.projection_estimate(store, graph, method, view.missing, len(data.sample.nodes))
    st.write(plain(f"{of} (A{', and each λ of B' if len(view.wanted) > 2 else ' and B' if after else ''})."))
    if st.button(
        f"Make {slow[method]}",
        key="projection_make",
        type="primary",
        icon=":material/play_arrow:",
        disabled=any(c.projects for c in ui.jobs_view(store).open),
        help="In a process of its own, which goes on when this page is closed.",
    ):
        ui.enqueue_projection(store, view.wanted, [method], size)
    st.caption(f"Takes {takes}.")
cards = [c.id for c in ui.jobs_view(store).open if c.projects]
state["projection_jobs"] = cards
if cards:
    st.fragment(run_every=1)(jobs)()
for words in view.unfit:
    st.warning(plain(words), icon=":material/warning:")
if view.before or view.after:
    find()
    pictures(view)
