"""What would change if values, groups or edges were others? Nothing is written to the user's files."""

from collections.abc import Callable
from typing import Any

import streamlit as st

import uge_core.dashboard as ui

KINDS = {
    "flip": "Give nodes another value",
    "merge": "Merge groups",
    "drop-group": "Leave a group out",
    "threshold": "Set the threshold of predicted links",
    "drop-edges": "Drop edges",
    "add-edges": "Add edges",
    "reweight-edges": "Weigh edges anew",
}
BADGES: dict[str, tuple[Any, str]] = {
    "re-judge": ("blue", "gavel"),
    "re-encode": ("violet", "cached"),
    "re-train": ("orange", "model_training"),
}
MOST = 60

plain = ui.plain_text
state = st.session_state
store = ui.RunStore()


def badge(tier: str) -> None:
    color, icon = BADGES[tier]
    st.badge(tier, icon=f":material/{icon}:", color=color, help=ui.TIER_WORDS[tier])


def words(text: str) -> list[str]:
    """Ids out of a text: commas, semicolons or new lines between them."""
    return [part.strip() for part in text.replace(";", ",").replace("\n", ",").split(",") if part.strip()]


def edges_of(text: str) -> list[list[str]]:
    """Edges out of a text: a pair a line, with a comma or white space between the ends."""
    lines = [line.strip() for line in text.replace(";", "\n").splitlines() if line.strip()]
    return [[part.strip() for part in (line.split(",") if "," in line else line.split())] for line in lines]


def act(change: Callable[[], Any]) -> Any:
    """A change of the draft; what is wrong with it is said below."""
    try:
        state.pop("whatif_error", None)
        return change()
    except ui.UgeError as error:
        state["whatif_error"] = str(error)
        return None


def add(kind: str, **values: Any) -> None:
    made = act(lambda: ui.whatif_edit(state["whatif_draft"], kind, **values))
    if made is not None:
        state["whatif_draft"] = made


def undo() -> None:
    state["whatif_draft"] = state["whatif_draft"].undo()
    state.pop("whatif_error", None)


def clear() -> None:
    state["whatif_draft"] = ui.Scenario(graph.data)
    state.pop("whatif_error", None)


def load_stored(stored: ui.Scenario) -> None:
    state["whatif_draft"], state["whatif_name"] = stored, stored.name


def named() -> ui.Scenario:
    draft: ui.Scenario = state["whatif_draft"]
    return ui.Scenario(draft.data, draft.edits, state.get("whatif_name", "").strip())


st.title("What-if")
st.write("What would change if values, groups or edges were others? Your files stay as they are.")
run, attribute = state["frame_before"], state["frame_attribute"]
if not run:
    st.info("No audited run yet. The Overview page shows the command that makes a first one.", icon=":material/info:")
    st.stop()
if not attribute:
    st.info("The audited runs' data have no attribute of people, so there are no groups.", icon=":material/info:")
    st.stop()

try:
    ui.whatif_warm(store)
    with st.spinner("Reading the graph of run A"):
        graph = ui.whatif_graph(store, run, attribute)
except ui.UgeError as error:
    st.error(plain(str(error)), icon=":material/error:")
    st.button("Try again", icon=":material/refresh:")
    st.stop()

if not isinstance(state.get("whatif_draft"), ui.Scenario) or state["whatif_draft"].data != graph.data:
    state["whatif_draft"] = ui.Scenario(graph.data)
if "nodes" in st.query_params and "whatif_nodes" not in state:
    state["whatif_nodes"] = words(st.query_params["nodes"])[:MOST]

st.caption(
    f"Run A, {plain(graph.name)}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges. "
    "Each number carries the tier that made it."
)
with st.container(horizontal=True):
    for tier in BADGES:
        badge(tier)
if graph.no_reencode:
    st.caption(f":material/info: No re-encode: {plain(graph.no_reencode)}")

chosen = [n for n in state.get("whatif_nodes", []) if isinstance(n, str)]
nodes_text = st.text_input(
    "Nodes",
    ", ".join(chosen),
    key=f"whatif_ids_{hash(tuple(chosen))}",
    max_chars=20_000,
    placeholder=", ".join(graph.first[:3]),
    help="Ids of the node table with commas; the Projection page sends a selection here.",
)
picked = words(nodes_text)
if len(picked) == 1:
    try:
        near = ui.whatif_find(store, run, picked[0])
    except ui.UgeError:
        near = []
    if near and picked[0] not in near:
        picked = [st.selectbox("Nodes whose id holds this text", near, format_func=ui.visible, key="whatif_near")]

edit_side, list_side = st.columns([3, 2])
with edit_side:
    st.header("Edit")
    kind = st.selectbox("Kind of edit", list(KINDS), format_func=KINDS.__getitem__, key="whatif_kind")
    attributes = list(graph.attributes)
    values: dict[str, Any] = {}
    ready = True
    if kind in ("flip", "merge", "drop-group"):
        at = attributes.index(attribute) if attribute in attributes else 0
        values["attribute"] = st.selectbox(
            "Attribute", attributes, index=at, format_func=ui.visible, key="whatif_attribute"
        )
        sizes = graph.attributes[values["attribute"]]["values"]

        def sized(value: str) -> str:
            return f"{ui.visible(value)} ({sizes.get(value, '')})"

        if kind == "merge":
            values["values"] = st.multiselect("Groups", list(sizes), format_func=sized, key="whatif_groups")
            values["value"] = st.text_input("Name of the merged group", " + ".join(values["values"]), max_chars=200)
            ready = len(values["values"]) > 1
        else:
            label = "Becomes" if kind == "flip" else "Group"
            values["value"] = st.selectbox(label, list(sizes), format_func=sized, key="whatif_value")
            if kind == "flip":
                values["nodes"] = picked
                ready = bool(picked)
                if not ready:
                    st.caption("Name the nodes above.")
    elif kind == "threshold":
        values["probability"] = st.number_input("Probability", 0.01, 0.99, 0.5, 0.05, key="whatif_threshold")
        st.caption("DP and EO of links predicted from this probability on, beside those at 0.5.")
    else:
        listed = st.text_area(
            "Edges, one a line",
            key="whatif_edges",
            max_chars=200_000,
            placeholder=", ".join(graph.first[:2]),
            help="Two ids with a comma. The table of the ego network lists the edges there are.",
        )
        values["edges"] = edges_of(listed)
        ready = bool(values["edges"])
        if kind == "reweight-edges":
            values["weight"] = st.number_input("Weight", 0.01, 1e6, 2.0, key="whatif_weight")
            if graph.messages == "plain":
                st.caption("This encoder's attention takes the place of weights, so only R and R~ follow.")
    st.button(
        "Add edit", icon=":material/add:", type="primary", disabled=not ready, on_click=add, args=(kind,), kwargs=values
    )
with list_side:
    draft: ui.Scenario = state["whatif_draft"]
    st.header("Edits")
    if draft.edits:
        for number, edit in enumerate(draft.edits, start=1):
            st.markdown(f"{number}. {plain(edit.words)}")
        st.caption(f"SHA-256 `{draft.hash[:16]}`: of the data and the edits in this order.")
    else:
        st.caption("None yet. Edits add up in the order they are made.")
    row = st.container(horizontal=True)
    row.button("Undo", icon=":material/undo:", disabled=not draft.edits, on_click=undo)
    row.button("Remove all", icon=":material/delete_sweep:", disabled=not draft.edits, on_click=clear)
if state.get("whatif_error"):
    st.error(plain(state["whatif_error"]), icon=":material/error:")


def tables(view: ui.JudgedView) -> None:
    for title, table, about in (
        ("Groups", view.groups, "DP and EO of each pair of groups"),
        ("Weights", view.weights, "R~/R of the training edges"),
        ("Touched cells", view.cells, "cells that the edges of edited nodes fall into"),
        ("How far nodes moved", view.moved, "distance over the vector's length before"),
    ):
        if len(table):
            with st.expander(f"{title}: {about}", icon=":material/table:"):
                st.dataframe(ui.visible_cells(table), hide_index=True, alt=f"{title}: {about}")


def train_it() -> None:
    """Keeps the draft as a scenario and puts its training into the queue."""
    made = ui.named_scenario(named())
    act(lambda: (ui.whatif_save(store, made), ui.retrain(run, made, store)))


def pairs(other: str) -> None:
    """A run that was trained on the edits against run A."""
    try:
        with st.spinner("Measuring both on the same people"):
            paired = ui.whatif_retrained(store, run, other)
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    badge("re-train")
    st.markdown(f"{plain(paired.sentence)} Run `{other}` against run A.")
    st.dataframe(ui.visible_cells(paired.table), hide_index=True, alt=paired.sentence)
    for note in paired.notes:
        st.caption(plain(note))


def progress() -> None:
    """How far the training is; when it ends, the page is drawn again, once."""
    card = ui.retraining(run, state["whatif_draft"], store)
    if card is None or not card.can_cancel:
        st.rerun()
    facts = " · ".join(f"{label} {value}" for label, value in card.facts)
    st.progress(card.share or 0.0, text=plain(" · ".join(filter(None, (f"Job {card.id}", card.stage, facts)))))
    if card.note:
        st.caption(plain(card.note))
    st.button("Cancel", key="whatif_cancel", icon=":material/stop:", on_click=ui.cancel, args=(card.id, store))


def again() -> None:
    """The third tier in place: run A's settings on the edited graph, in the queue."""
    other = ui.retrained(run, state["whatif_draft"], store)
    if other:
        pairs(other)
        return
    card = ui.retraining(run, state["whatif_draft"], store)
    if card and card.can_cancel:
        ui.keep_queue_going(store)
        st.fragment(run_every=1)(progress)()
        st.caption("It goes on when this page is closed.")
        return
    offer = ui.retrain_offer(run, state["whatif_draft"], store)
    if offer.refusal:
        st.caption(f":material/info: Cannot be trained again: {plain(offer.refusal)}.")
        return
    if card and card.reason:
        st.warning(plain(f"Job {card.id} ended early: {card.reason} {card.remedy or ''}"), icon=":material/warning:")
    st.caption(plain(offer.words))
    st.button(
        "Train it again",
        key="whatif_again",
        icon=":material/model_training:",
        on_click=train_it,
        help="Keeps these edits as a scenario and puts a job into the queue; run A and the new run are then "
        "compared in pairs.",
    )


st.header("Before and after")
offered = ui.whatif_attackers()
quickest = next(iter(offered))
attackers = st.multiselect(
    "Attackers",
    list(offered),
    default=[quickest],
    format_func=offered.__getitem__,
    key="whatif_attackers",
    help="The linear probe answers at once; the others take longer.",
)
if not draft.edits:
    st.info("Add an edit, and what it changes stands here.", icon=":material/edit:")
else:
    try:
        with st.spinner("Measuring"):
            view = ui.whatif_judge(store, run, named(), attribute, attackers or [quickest])
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        row = st.container(horizontal=True)
        row.button("Ask again", icon=":material/refresh:")
        row.button("Undo the last edit", icon=":material/undo:", on_click=undo)
    else:
        badge(view.tier)
        for sentence in view.sentences:
            st.markdown(plain(sentence))
        if view.why_not:
            st.caption(f":material/info: Re-judged only: {plain(view.why_not)}")
        st.dataframe(ui.visible_cells(view.table), hide_index=True, alt=" ".join(view.sentences))
        st.caption(
            "Intervals: 95 %, over people, for one training seed; before and after are not paired. "
            "Chance: what random vectors, or groups that do not differ, give."
        )
        tables(view)
        for remark in view.remarks:
            st.caption(plain(remark))
        st.download_button(
            "Download CSV",
            view.csv,
            file_name="whatif.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/download:",
        )
    st.header("Trained again")
    again()

st.header("Ego network")
if not picked:
    st.info("Name a node above to see its neighbours and why each edge weighs what it does.", icon=":material/hub:")
else:
    try:
        ego = ui.whatif_ego(store, run, picked[:MOST], draft, attribute)
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
    else:
        st.markdown(f"**{plain(ego.title)}**")
        st.plotly_chart(
            ui.ego_figure(ego, dark=st.context.theme.type == "dark"), config=ui.CHART_CONFIG, alt=ego.alt, key="ego"
        )
        # A plain table, as the other kind offers its rows as a file: weights tell a person's group. Words wrap in it,
        # so that it takes the page's whole width.
        edges = ui.visible_cells(ego.table).map(
            lambda cell: plain(f"{cell:.3f}" if isinstance(cell, float) else str(cell))
        )
        st.table(edges, hide_index=True, height=400, alt=ego.alt)
        st.caption(plain(ego.caption))

st.header("Scenarios")
left, right = st.columns([3, 2], vertical_alignment="bottom")
left.text_input("Name", key="whatif_name", max_chars=200, placeholder="what this is about")
with right.container(horizontal=True):
    can = bool(draft.edits and named().name)
    st.button(
        "Save",
        icon=":material/save:",
        disabled=not can,
        on_click=lambda: act(lambda: ui.whatif_save(store, named())),
        help="Into the store of runs, never into your files.",
    )
    st.button(
        "Train it",
        icon=":material/model_training:",
        disabled=not can,
        on_click=lambda: act(lambda: (ui.whatif_save(store, named()), ui.retrain(run, named(), store))),
        help="Puts a job into the queue that trains run A's settings on the edited graph; the Runs page shows it.",
    )
kept = ui.whatif_stored(store, graph.data)
for stored in kept:
    scenario = stored.scenario
    with st.container(border=True):
        top, buttons = st.columns([3, 2])
        top.markdown(f"**{plain(scenario.name)}** · `{scenario.id}`")
        for edit in scenario.edits:
            top.caption(plain(edit.words))
        with buttons.container(horizontal=True):
            st.button(
                "Open", key=f"open-{scenario.id}", icon=":material/folder_open:", on_click=load_stored, args=(scenario,)
            )
            st.button(
                "Delete",
                key=f"delete-{scenario.id}",
                icon=":material/delete:",
                on_click=lambda i=scenario.id: act(lambda: ui.whatif_delete(store, i)),
            )
        other = ui.retrained(run, scenario, store)
        if other and scenario.hash == draft.hash:
            st.caption(f"Trained again as run `{other}`: see above.")
        elif other:
            pairs(other)
if not kept:
    st.caption("None is stored for this graph yet.")
if len(kept) > 1:
    names = {s.scenario.id: ui.visible(s.scenario.name) for s in kept}
    two = st.multiselect(
        "Compare two",
        list(names),
        max_selections=2,
        format_func=names.__getitem__,
        key="whatif_two",
        help="Both measured with run A.",
    )
    if len(two) == 2:
        first, second = (next(s.scenario for s in kept if s.scenario.id == i) for i in two)
        try:
            side_by_side = ui.whatif_compare(store, run, first, second, attribute, attackers or [quickest])
        except ui.UgeError as error:
            st.error(plain(str(error)), icon=":material/error:")
        else:
            st.dataframe(
                ui.visible_cells(side_by_side), hide_index=True, alt=f"{first.name} and {second.name} side by side"
            )
