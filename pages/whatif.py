"""What would change if values, groups or edges were others? Nothing is written to the user's files."""

from collections.abc import Callable
from typing import Any

import streamlit as st

import uge_core.dashboard as ui

KINDS = {
    "flip": "Give people another value",
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
MOST = 60  # people who are shown one by one
LARGEST = 5_000  # people whom one edit names
# Prose as wide as it is read; columns below one another where the sidebar leaves them too little; labels whole.
LOOK = """<style>
[data-testid=stMain] :is([data-testid=stMarkdownContainer], [data-testid=stCaptionContainer]) p { max-width: 75ch; }
@media (max-width: 1000px) {
  [data-testid=stMain] [data-testid=stColumn] { min-width: 100%; }
  [data-testid=stMain] [data-testid=stColumn] [data-testid=stColumn] { min-width: 8rem; }
}
:is([class*=st-key-whatif_without], [class*=st-key-whatif_found]) button :is(div, span, p) {
  white-space: normal; text-align: left; overflow: visible;
}
</style>"""

plain = ui.plain_text
state = st.session_state
store = ui.RunStore()


def badge(tier: str) -> None:
    color, icon = BADGES[tier]
    st.badge(ui.TIER_NAMES[tier], icon=f":material/{icon}:", color=color, help=ui.TIER_WORDS[tier])


def edges_of(text: str) -> list[list[str]]:
    """Edges out of a text: a pair a line, with a comma or white space between the ends."""
    lines = [line.strip() for line in text.replace(";", "\n").splitlines() if line.strip()]
    return [[part.strip() for part in (line.split(",") if "," in line else line.split())] for line in lines]


def act(change: Callable[[], Any], where: str = "whatif_error") -> Any:
    """A change; what is wrong with it is said where it was asked for."""
    try:
        state.pop(where, None)
        return change()
    except ui.UgeError as error:
        state[where] = str(error)
        return None


def said(where: str = "whatif_error") -> None:
    """What was wrong with the last change."""
    if state.get(where):
        st.error(plain(state[where]), icon=":material/error:")


def add(kind: str, attribute: str, people: list[str]) -> None:
    """The edit that the form describes, read when its button is pressed: what was just typed is in it."""
    values: dict[str, Any] = {}
    if kind in ("flip", "merge", "drop-group"):
        values["attribute"] = attribute
    if kind == "flip":
        values |= {"nodes": people, "value": state["whatif_value"]}
    elif kind == "drop-group":
        values["value"] = state["whatif_value"]
    elif kind == "merge":
        groups = state["whatif_groups"]
        values |= {"values": groups, "value": state["whatif_merged"].strip() or " + ".join(groups)}
    elif kind == "threshold":
        values["probability"] = state["whatif_threshold"]
    else:
        values["edges"] = edges_of(state["whatif_edges"])
        if kind == "reweight-edges":
            values["weight"] = state["whatif_weight"]
    made = act(lambda: ui.whatif_edit(store, run, state["whatif_draft"], kind, **values))
    if made is not None:
        state["whatif_draft"] = made
        if "whatif_edges" in state:
            ui.set_fields(state, {"whatif_edges": ""})


def change(draft: ui.Scenario) -> None:
    """Other edits in place of those there are."""
    state["whatif_draft"] = draft
    for where in ("whatif_error", "whatif_clicked"):
        state.pop(where, None)


def load_stored(stored: ui.Scenario) -> None:
    change(stored)
    ui.set_fields(state, {"whatif_name": stored.name})


def look_at(people: list[str]) -> None:
    """These besides those that are looked at."""
    state["whatif_nodes"] = list(dict.fromkeys([*state.get("whatif_nodes", []), *people]))[:LARGEST]
    ui.set_fields(state, {"whatif_find": ""})


def forget() -> None:
    state["whatif_nodes"] = []


def keep_chosen(key: str) -> None:
    state["whatif_nodes"] = state[key]


def clicked() -> None:
    """An edge is dropped, or had again; a neighbour is looked at too."""
    points = state["ego"]["selection"]["points"]
    if not points:
        return
    what, *ids = points[0]["customdata"]
    if what == "node":
        look_at(ids)
        return
    made = act(lambda: ui.whatif_toggle(store, run, state["whatif_draft"], ids), "whatif_clicked")
    if made is not None:
        state["whatif_draft"] = made


def named() -> ui.Scenario:
    draft: ui.Scenario = state["whatif_draft"]
    return ui.Scenario(draft.data, draft.edits, state.get("whatif_name", "").strip())


def remember(data: str) -> None:
    """Edits are kept in the store, and the address says under which token: a reload finds them again.

    Only what this session wrote itself is written over. Edits that an address opened are copied by the first change, so
    that whoever was sent the address changes nothing of the sender's. Whom somebody looks at stays in the session.
    """
    written, opened = state.setdefault("whatif_tokens", {}), state.setdefault("whatif_opened", {})
    now = (data, named())
    if state.get("whatif_kept") != now:
        written[data] = ui.whatif_keep(store, written.get(data, ""), named())
        opened.pop(data, None)
        state["whatif_kept"] = now
    if token := written.get(data) or opened.get(data):
        st.query_params["draft"] = token
    elif "draft" in st.query_params:
        del st.query_params["draft"]


def begin(data: str) -> None:
    """The edits of this graph: those of this session, else those that the address names, else none."""
    draft = state.get("whatif_draft")
    if not isinstance(draft, ui.Scenario) or draft.data != data:
        if isinstance(draft, ui.Scenario):
            leave()
        written, opened = state.setdefault("whatif_tokens", {}), state.setdefault("whatif_opened", {})
        token = written.get(data) or opened.get(data) or st.query_params.get("draft", "")
        stored = ui.whatif_draft(store, token, data)
        if stored:
            if token != written.get(data):
                opened[data] = token
            ui.set_fields(state, {"whatif_name": stored.name})
            state["whatif_kept"] = (data, stored)
        # Last, as a press may cut a run of the page short at any of these; the next one begins anew then.
        state["whatif_draft"] = ui.Scenario(data, stored.edits) if stored else ui.Scenario(data)
    elif "whatif_name" not in state and state.get("whatif_kept", ("",))[0] == data:
        # A look at another page forgets what was typed.
        ui.set_fields(state, {"whatif_name": state["whatif_kept"][1].name})
    if "whatif_sent" in state:
        state["whatif_nodes"] = state["whatif_sent"]
        del state["whatif_sent"]
    if "nodes" in st.query_params:
        asked = [part.strip() for part in st.query_params["nodes"].split(",") if part.strip()]
        state["whatif_nodes"] = asked[:LARGEST]
        del st.query_params["nodes"]
    state["whatif_nodes"] = [n for n in state.get("whatif_nodes", []) if isinstance(n, str)][:LARGEST]


def leave() -> None:
    """Nothing of the graph that was shown before means anything in another one: neither ids nor what was said of them."""
    state["whatif_nodes"] = []
    ui.set_fields(state, {key: "" for key in ("whatif_find", "whatif_edges", "whatif_name") if key in state})
    for where in ("whatif_error", "whatif_clicked"):
        state.pop(where, None)


st.html(LOOK)
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

begin(graph.data)
act(lambda: remember(graph.data), "whatif_unkept")

who = "people" if not graph.bipartite else "users and items"
st.caption(
    f"Run A, {plain(graph.name)}: {graph.num_nodes:,} {who}, {graph.num_edges:,} edges. Each number below says how it "
    "was made:"
)
with st.container(horizontal=True):
    for tier in BADGES:
        badge(tier)
if graph.no_reencode:
    st.caption(f":material/info: Nothing is re-encoded: {plain(graph.no_reencode)}")
said("whatif_unkept")

st.header("People")
text = st.text_input(
    "Find people",
    key="whatif_find",
    type="search",
    live="300ms",
    max_chars=20_000,
    placeholder=f"an id such as {graph.first[0]}, a value, or several ids with commas",
    help="A part of an id, one or more values, or a list of ids. The Projection page sends a selection here.",
)
if (text or "").strip():
    try:
        found = ui.whatif_find(store, run, text or "")
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
    else:
        with st.container(horizontal=True, gap="small"):
            if found.named:
                st.button(
                    f"All {len(found.named)} that are named",
                    key="whatif_found_all",
                    icon=":material/group:",
                    on_click=look_at,
                    args=(list(found.named),),
                )
            for number, (name, label) in enumerate(found.people.items()):
                st.button(
                    plain(label),
                    key=f"whatif_found_{number}",
                    icon=":material/person:",
                    on_click=look_at,
                    args=([name],),
                )
        if found.error:
            st.error(plain(found.error), icon=":material/error:")
        if found.note:
            st.caption(plain(found.note))
picked: list[str] = []
chosen = state["whatif_nodes"]
if chosen:
    if len(chosen) <= MOST:
        key = f"whatif_chosen_{hash(tuple(chosen))}"
        st.multiselect(
            "Looked at", chosen, default=chosen, format_func=ui.visible, key=key, on_change=keep_chosen, args=(key,)
        )
    else:
        st.caption(f"{len(chosen):,} people are looked at; the first {MOST} stand below, an edit is about all of them.")
        st.button("Look at nobody", key="whatif_nobody", icon=":material/close:", on_click=forget)
    try:
        people = ui.whatif_people(store, run, chosen[:MOST], state["whatif_draft"])
    except ui.UgeError:
        # An edit does not fit any more, which is said where the edits are judged.
        people = ui.whatif_people(store, run, chosen[:MOST], ui.Scenario(graph.data))
    if people.error:
        st.error(plain(people.error), icon=":material/error:")
    picked = [*people.ids, *chosen[MOST:]]
    if picked:
        # A plain table, as the other kind offers its rows as a file.
        st.table(
            ui.visible_cells(people.table).map(lambda cell: plain(str(cell))),
            hide_index=True,
            height=320 if len(picked) > 6 else "content",
            alt="Values and links of the people looked at",
        )
else:
    st.caption("Nobody yet. Edits of groups, thresholds and edges need nobody.")

edit_side, list_side = st.columns([3, 2])
with edit_side:
    st.header("Edit")
    kind = st.selectbox("Kind of edit", list(KINDS), format_func=KINDS.__getitem__, key="whatif_kind")
    attributes = list(graph.attributes)
    edited = ""
    if kind in ("flip", "merge", "drop-group"):
        at = attributes.index(attribute) if attribute in attributes else 0
        edited = st.selectbox("Attribute", attributes, index=at, format_func=ui.visible, key="whatif_attribute")
    # In a form, so that one press takes what was just typed with it.
    with st.form("whatif_form", border=False):
        if edited:
            sizes = graph.attributes[edited]["values"]

            def sized(value: str) -> str:
                return f"{ui.visible(value)} ({sizes.get(value, '')})"

        if kind == "merge":
            st.multiselect("Groups", list(sizes), format_func=sized, key="whatif_groups")
            st.text_input("Name of the merged group", key="whatif_merged", max_chars=200, placeholder="both names")
        elif kind in ("flip", "drop-group"):
            label = "Becomes" if kind == "flip" else "Group"
            st.selectbox(label, list(sizes), format_func=sized, key="whatif_value")
            if kind == "flip":
                few = ", ".join(picked[:3])
                more = f" and {len(picked) - 3} more" if len(picked) > 3 else ""
                st.caption(f"Of {plain(few)}{more}." if picked else "Find people above first.")
        elif kind == "threshold":
            st.number_input("Probability", 0.01, 0.99, 0.5, 0.05, key="whatif_threshold")
            st.caption("DP and EO of links predicted from this probability on, beside those at 0.5.")
        else:
            st.text_area(
                "Edges, one a line",
                key="whatif_edges",
                max_chars=200_000,
                placeholder=", ".join(graph.first[:2]),
                help="Two ids with a comma. A click on an edge of the ego network drops it.",
            )
            if kind == "reweight-edges":
                st.number_input("Weight", 0.01, 1e6, 2.0, key="whatif_weight")
                if graph.messages == "plain":
                    st.caption("This encoder's attention takes the place of weights, so only R and R~ follow.")
        st.form_submit_button(
            "Add edit",
            icon=":material/add:",
            type="primary",
            disabled=kind == "flip" and not picked,
            on_click=add,
            args=(kind, edited, picked),
        )
    said()
with list_side:
    draft: ui.Scenario = state["whatif_draft"]
    st.header("Edits")
    if graph.data in state["whatif_opened"]:
        st.caption("These were opened from the address. What you do changes a copy.")
    for number, edit in enumerate(draft.edits):
        st.button(
            f"{number + 1}. {plain(edit.words)}",
            key=f"whatif_without_{number}",
            icon=":material/close:",
            help="Undo this edit",
            on_click=change,
            args=(draft.without(number),),
        )
    if draft.edits:
        st.caption(f"SHA-256 `{draft.hash[:16]}`: of the data and the edits in this order.")
    else:
        st.caption("None yet. Edits add up in the order they are made. A reload of the page keeps them.")
    row = st.container(horizontal=True)
    row.button("Undo", icon=":material/undo:", disabled=not draft.edits, on_click=change, args=(draft.undo(),))
    row.button(
        "Remove all",
        icon=":material/delete_sweep:",
        disabled=not draft.edits,
        on_click=change,
        args=(ui.Scenario(graph.data),),
    )


def tables(view: ui.JudgedView) -> None:
    for title, table, about in (
        ("Groups", view.groups, "DP and EO of each pair of groups"),
        ("Weights", view.weights, "R~/R of the training edges"),
        ("Touched cells", view.cells, "cells that the edges of edited people fall into"),
        ("How far people moved", view.moved, "distance over the vector's length before"),
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
        st.caption(f":material/info: Cannot be retrained: {plain(offer.refusal)}.")
        return
    if card and card.reason:
        st.warning(plain(f"Job {card.id} ended early: {card.reason} {card.remedy or ''}"), icon=":material/warning:")
    st.caption(plain(offer.words))
    st.button(
        "Retrain",
        key="whatif_again",
        type="primary",
        icon=":material/model_training:",
        on_click=train_it,
        help="Keeps these edits as a scenario and puts a job into the queue; run A and the new run are then "
        "compared in pairs.",
    )


def network() -> None:
    """Who is linked to whom around those looked at, and whom they would be recommended."""
    st.header("Ego network")
    if not picked:
        st.info(
            "Find a person above to see their neighbours and why each edge weighs what it does.", icon=":material/hub:"
        )
        return
    try:
        ego = ui.whatif_ego(store, run, picked[:MOST], draft, attribute)
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    st.markdown(f"**{plain(ego.title)}**")
    st.caption("Click an edge to drop it, a dropped one to have it again, a neighbour to look at them too.")
    said("whatif_clicked")
    st.plotly_chart(
        ui.ego_figure(ego, dark=st.context.theme.type == "dark"),
        config=ui.CHART_CONFIG,
        alt=ego.alt,
        key="ego",
        on_select=clicked,
        selection_mode="points",
    )
    st.caption(plain(ego.caption))
    with st.expander("The edges, and why each weighs what it does", icon=":material/table:"):
        # A plain table, as the other kind offers its rows as a file: weights tell a person's group. Words wrap in it,
        # so that it takes the page's whole width.
        edges = ui.visible_cells(ego.table).map(
            lambda cell: plain(f"{cell:.3f}" if isinstance(cell, float) else str(cell))
        )
        st.table(edges, hide_index=True, height=400, alt=ego.alt)


def first_links() -> None:
    """The ten first predicted links of somebody before and after."""
    st.header("First predicted links")
    whose = picked[0]
    if len(picked) > 1:
        whose = st.selectbox("Of", picked[:MOST], format_func=ui.visible, key="whatif_whose")
    try:
        other = ui.retrained(run, draft, store) if draft.edits else None
        links = ui.whatif_links(store, run, whose, draft, attribute, other)
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    shown = links.table
    if draft.edits:
        badge(links.tier)
        st.markdown(plain(links.sentence))
    else:
        shown = shown[["Place", "Before"]].rename(columns={"Before": "As things are"})
    st.table(
        ui.visible_cells(shown).map(lambda cell: plain(str(cell))),
        hide_index=True,
        alt=f"First predicted links of {ui.visible(whose)}",
    )
    if draft.edits and links.note:
        st.caption(plain(links.note))
    st.caption(
        f"The ten with the highest scores of all that {plain(whose)} is not linked to in training. A list of one person "
        "is an illustration; the measures below are about everybody."
    )


around, recommended = st.columns([3, 2], gap="medium") if picked else (st.container(), st.container())
with around:
    network()
if picked:
    with recommended:
        first_links()
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
        row.button("Undo the last edit", icon=":material/undo:", on_click=change, args=(draft.undo(),))
    else:
        badge(view.tier)
        for sentence in view.sentences:
            st.markdown(plain(sentence))
        if view.why_not:
            st.caption(f":material/info: Recomputed only: {plain(view.why_not)}")
        st.plotly_chart(
            ui.changes_figure(view.measures, dark=st.context.theme.type == "dark"),
            config=ui.CHART_CONFIG,
            alt=ui.changes_alt(view.measures),
            key="whatif_changes",
        )
        st.caption(
            "Intervals: 95 %, over people, for one training seed; before and after are not paired. "
            "Chance: what random vectors, or groups that do not differ, give."
        )
        st.dataframe(ui.visible_cells(view.table), hide_index=True, alt=" ".join(view.sentences))
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
    st.header("Retrained")
    again()

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
            st.caption(f"Retrained as run `{other}`: see above.")
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
