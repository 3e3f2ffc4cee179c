"""Train a grid of runs, watch it, and look after what is stored."""

from typing import Any

import streamlit as st

import uge_core.dashboard as ui

EPOCHS = 100_000
DONE = {"finished": "green", "failed": "red", "cancelled": "gray", "interrupted": "orange"}
ICONS = {"finished": "check_circle", "failed": "error", "cancelled": "cancel", "interrupted": "pause_circle"}

INSPECT = [
    ("tradeoff.py", "Trade-off", "show_chart"),
    ("fairness.py", "Fairness", "balance"),
    ("leakage.py", "Leakage", "visibility"),
]

plain = ui.plain_text
state = st.session_state
store = ui.RunStore()


@st.cache_resource(max_entries=2, ttl=900, show_spinner="Reading the graph")
def form_of(spec: str, root: str, stamp: str) -> Any:
    """The form, made anew when a file of the graph changes."""
    return ui.training_form(spec, ui.RunStore(root))


def stamp_of(spec: str) -> str:
    try:
        return ui.data_stamp(spec, store.root)
    except ui.UgeError:
        return ""  # the form says what is wrong


def setting(field: Any, key: str) -> Any:
    """One widget for one setting; None where it is left to each method."""
    said = plain(f"{field.help} ({field.owner}). In commands: ") + f"`--set {field.name}=`"
    label = plain(field.label)
    own = "each method's own"
    if field.kind == "yes-no":
        return st.checkbox(label, bool(field.default), key=key, help=said, persist_state="session")
    if field.kind == "choice":
        index = field.choices.index(field.default) if field.default in field.choices else None
        return st.selectbox(
            label,
            field.choices,
            index=index,
            format_func=lambda c: ui.visible(field.word(c)),
            key=key,
            help=said,
            placeholder=own,
            persist_state="session",
        )
    if field.kind == "text":
        text = st.text_input(label, field.default, key=key, help=said, placeholder=own, persist_state="session")
        return text or None
    whole = field.kind == "whole"
    kind: Any = int if whole else float
    return st.number_input(
        label,
        min_value=None if field.low is None else kind(field.low),
        max_value=None if field.high is None else kind(field.high),
        value=None if field.default is None else kind(field.default),
        step=1 if whole else None,
        format=None if whole else "%g",
        key=key,
        help=said,
        placeholder=own,
        persist_state="session",
    )


def take() -> None:
    """One of the graphs at hand is the graph."""
    if state["runs_at_hand"]:
        state["runs_graph"] = state["runs_at_hand"]


def typed() -> None:
    """What was typed is the graph; it stays when the page is left, where the field's own state goes."""
    state["runs_graph"] = state["runs_data"]


def begin(form: Any) -> None:
    """With another graph, what depends on it begins anew."""
    backbone, unknown = next(iter(form.backbones)), next(iter(form.unknown))
    about = form.spec, form.sensitive, tuple(form.attributes), unknown, backbone
    before = state.get("runs_about")
    if before != about:
        state["runs_about"] = about
        ui.set_fields(state, {"runs_sensitive": list(form.sensitive), "runs_unknown": unknown})
        if before is None or before[-1] != backbone:
            ui.set_fields(state, {"runs_backbone": backbone})


def grid_form() -> None:
    if (asked := st.query_params.get("graph")) and asked != state.get("runs_asked"):
        state["runs_graph"] = state["runs_asked"] = asked  # another page's link names it
    # What the Data page showed last, or what was typed here.
    state["runs_data"] = state.setdefault("runs_graph", "sample:town")
    at_hand = ui.known_graphs(store)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    spec = row.text_input(
        "Graph",
        key="runs_data",
        on_change=typed,
        help="A sample (sample:town, sample:titles), a folder or file on this machine, or pyg:NAME, which is "
        "fetched from its public host.",
    )
    row.button("Read again", icon=":material/refresh:", on_click=form_of.clear)
    if any(not name.startswith("sample:") for name in at_hand):
        st.pills(
            "Uploads and samples",
            list(at_hand),
            format_func=lambda s: ui.plain_text(at_hand[s]),
            key="runs_at_hand",
            on_change=take,
        )
    try:
        form = form_of(spec.strip(), str(store.root), stamp_of(spec.strip()))
    except ui.UgeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    st.caption(plain(form.summary))
    begin(form)
    if (treat := st.query_params.get("treat")) in form.attributes and treat != state.get("runs_treat"):
        state["runs_treat"] = treat
        methods = [m for m in form.methods if m in ("none", "uge-n")]
        ui.set_fields(state, {"runs_sensitive": [treat], "runs_methods": methods})
    left, right = st.columns(2)
    backbone = left.selectbox(
        "Backbone",
        list(form.backbones),
        format_func=form.backbones.__getitem__,
        key="runs_backbone",
        help="What turns the graph into vectors.",
        persist_state="session",
    )
    methods = right.multiselect(
        "Methods",
        list(form.methods),
        default=list(form.methods)[:1],
        format_func=form.methods.__getitem__,
        key="runs_methods",
        help="No debiasing is what the others are compared with. The Method page has the formulas.",
        wrap=True,
        persist_state="session",
    )
    chosen = [(form.backbones[backbone], backbone), *((form.methods[m], m) for m in methods)]
    st.caption("  \n".join(f"**{plain(label)}:** {plain(form.summaries[name])}" for label, name in chosen))
    with st.popover("What each method does", icon=":material/help:"):
        st.markdown(
            "\n".join(f"- **{plain(label)}:** {plain(form.summaries[name])}" for name, label in form.methods.items())
        )
    sensitive: list[str] = []
    jointly = False
    if form.reads_attributes(methods):
        left, right = st.columns(2, vertical_alignment="bottom")
        sensitive = left.multiselect(
            "Attributes to treat",
            list(form.attributes),
            format_func=lambda a: f"{ui.visible(a)} ({form.attributes[a]} values)",
            key="runs_sensitive",
            help="Whose influence the methods take out; those that the data declare sensitive come first. The audit "
            "covers every attribute, treated or not.",
            wrap=True,
            persist_state="session",
        )
        if len(sensitive) > 1:
            how = right.segmented_control(
                "Several attributes",
                ["each in turn", "together"],
                default="each in turn",
                required=True,
                key="runs_how",
                persist_state="session",
            )
            jointly = how == "together"
    penal = form.uses_lambda(methods)
    *first, second, third, fourth = st.columns(4 if penal else 3)
    lams = ""
    if penal:
        lams = first[0].text_input(
            "λ",
            "",
            key="runs_lams",
            placeholder="0.1, 0.5, 1.9",
            help="Weights of the penalty, with commas; empty takes each method's default. Larger hides more and "
            "costs more link quality.",
            persist_state="session",
        )
    seeds = second.text_input(
        "Seeds",
        "0",
        key="runs_seeds",
        help="With commas, one run each; three or more show how far chance goes.",
        persist_state="session",
    )
    epochs = third.number_input(
        "Epochs", 1, EPOCHS, form.epochs, key="runs_epochs", help="Passes over the edges.", persist_state="session"
    )
    device = fourth.selectbox(
        "Device", list(form.devices), format_func=form.devices.__getitem__, key="runs_device", persist_state="session"
    )
    on = next(iter(form.places))
    if len(form.places) > 1:
        on = st.selectbox(
            "Where it trains",
            list(form.places),
            format_func=lambda name: ui.visible(form.places[name]),
            key="runs_on",
            help="By Ray each run is a pass of its own, and passes and audits run side by side. The time below is for one "
            "after the other.",
            persist_state="session",
        )
    unknown = next(iter(form.unknown))
    if form.missing:
        unknown = st.selectbox(
            "Missing values",
            list(form.unknown),
            format_func=form.unknown.__getitem__,
            key="runs_unknown",
            persist_state="session",
            help="Without a value: " + plain(", ".join(f"{a} {n}" for a, n in form.missing.items())),
        )
    options: dict[str, Any] = {}
    with st.expander("More settings", icon=":material/tune:"):
        columns = st.columns(3)
        for i, field in enumerate(form.fields(backbone, methods)):
            with columns[i % 3]:
                options[field.name] = setting(field, f"runs_option_{form.spec}_{backbone}_{field.owner}_{field.name}")
        slow = ui.slow_projections()
        projections = st.pills(
            "Pictures to make after training",
            list(slow),
            selection_mode="multi",
            format_func=slow.__getitem__,
            key="runs_projections",
            persist_state="session",
            help="For the Projection page, of 20,000 people at most. They take minutes a run.",
        )
        force = st.checkbox("Train stored runs again", key="runs_force", persist_state="session")
    try:
        settings = form.settings(
            backbone=backbone,
            methods=methods,
            sensitive=sensitive,
            jointly=jointly,
            lams=lams,
            seeds=seeds,
            epochs=epochs,
            unknown=unknown,
            device=device,
            options=options,
            force=force,
            projections=projections,
            on=on,
        )
        estimate = ui.estimate(form, settings, store)
    except ui.UgeError as error:
        st.warning(plain(str(error)), icon=":material/info:")
        return
    if estimate.refusal:
        st.warning(plain(estimate.refusal), icon=":material/info:")
    else:
        st.write(estimate.words)
        if not estimate.known:
            measure(settings)
    if st.button(
        "Train", type="primary", icon=":material/play_arrow:", key="runs_train", disabled=not estimate.to_train
    ):
        number = ui.enqueue(form, settings, store)
        st.toast(f"Job {number} is in the queue", icon=":material/schedule:")


def measure(settings: dict[str, Any]) -> None:
    """Offers to measure what is estimated by rule of thumb."""
    if job := ui.measuring(settings, store):
        st.caption(f":material/speed: Job {job.id} measures this choice; the estimate follows.")
        return
    st.button(
        "Measure this choice, some ten seconds",
        key="runs_measure",
        icon=":material/speed:",
        on_click=begin_measuring,
        args=(settings,),
        help="Trains each method for a few epochs and attacks one attribute, through the queue. Nothing but the "
        "speed is kept.",
    )


def begin_measuring(settings: dict[str, Any]) -> None:
    try:
        ui.enqueue_measure(settings, store)
    except ui.UgeError as error:
        st.toast(plain(str(error)), icon=":material/error:")


def draw(card: Any) -> None:
    """One job."""
    with st.container(border=True):
        head, buttons = st.columns([5, 2], vertical_alignment="center")
        word = (
            f":{DONE[card.status]}-badge[:material/{ICONS[card.status]}: {card.stage}]" if card.status in DONE else ""
        )
        head.markdown(f"**Job {card.id}: {plain(card.title)}** {word}")
        facts = " · ".join(f"{label} {value}" for label, value in card.facts)
        head.caption(plain(card.details if card.can_cancel else " · ".join(filter(None, (card.details, facts)))))
        with buttons.container(horizontal=True, horizontal_alignment="right"):
            if card.can_cancel and st.button("Cancel", key=f"cancel_{card.id}", icon=":material/stop:"):
                ui.cancel(card.id, store)
                st.rerun()
            if card.can_resume and st.button("Resume", key=f"resume_{card.id}", icon=":material/play_arrow:"):
                ui.resume(card.id, store)
                st.rerun()
            if not card.can_cancel and st.button("Dismiss", key=f"forget_{card.id}", icon=":material/close:"):
                ui.forget(card.id, store)
                st.rerun()
        if card.status == "running":
            st.progress(card.share or 0.0, text=plain(" · ".join(filter(None, (card.stage, facts)))))
            if len(card.losses) > 1:
                (first, before), (last, now) = card.losses[0], card.losses[-1]
                st.plotly_chart(
                    ui.loss_figure(card.losses, dark=st.context.theme.type == "dark"),
                    config=ui.CHART_CONFIG,
                    alt="Mean loss of the runs that train now: "
                    f"{before:.4f} at epoch {first}, {now:.4f} at epoch {last}",
                    key=f"losses_{card.id}",
                )
        elif card.can_cancel:
            head.caption(f":material/schedule: {card.stage}")
        if card.last_run and (found := ui.address_of(store, card.last_run)):
            st.page_link(
                "overview.py", label="Look at what was found", icon=":material/arrow_forward:", query_params=found
            )
        if card.note:
            st.caption(f":material/info: {plain(card.note)}")
        if card.reason:
            st.write(plain(card.reason))
        if card.remedy:
            st.write(f":material/build: {card.remedy}")
        if card.log:
            with st.expander("Last lines", icon=":material/terminal:"):
                st.code("\n".join(card.log), language=None, wrap_lines=True)


def queue() -> None:
    """The jobs; when one begins or ends, the whole page is drawn again, once."""
    view = ui.jobs_view(store)
    if view.state != state.get("runs_state"):
        state["runs_state"] = view.state
        st.rerun()
    for card in (*view.open, *view.over):
        draw(card)
    if not view.open and not view.over:
        st.caption("No job yet. Training goes on when this page is closed.")


def history() -> None:
    # What the widgets below hold, so that a thousand runs are read once.
    asked = state.get("runs_filter", ""), state.get("runs_status", []), state.get("runs_archived", False)
    by_seed = state.get("runs_by_seed", False)
    view = ui.history_view(store, text=asked[0], statuses=asked[1], archived=asked[2], by_seed=by_seed)
    hidden = len(view.archived)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.text_input(
            "Filter",
            key="runs_filter",
            placeholder="a method, a graph, a seed, an id",
            persist_state="session",
            width=280,
        )
        st.pills(
            "Status", view.statuses, selection_mode="multi", key="runs_status", persist_state="session", width="content"
        )
        st.toggle(
            "One row per seed",
            key="runs_by_seed",
            help="Else runs that differ in their seed alone are one row.",
            on_change=refold,
            persist_state="session",
        )
        st.toggle(
            f"Archived ({hidden:,})", key="runs_archived", disabled=not hidden and not asked[2], persist_state="session"
        )
    if not view.total:
        words = "All runs are archived." if hidden else "No run is stored yet. Choose a graph and press Train."
        st.info(words, icon=":material/info:")
        return
    rows = "" if len(view.runs) == view.shown else f" in {len(view.runs):,} rows"
    st.caption(
        f"{view.shown:,} of {view.total:,} runs{rows}. Tick two rows to compare them, any number to archive or delete."
    )
    keys = list(view.runs)
    table = f"runs_table_{hash(tuple(keys))}"  # ticks are row numbers, so other rows are another table
    st.dataframe(
        ui.visible_cells(view.table),
        hide_index=True,
        column_config={
            "Run": st.column_config.TextColumn(pinned=True, width="medium"),
            "Epochs": st.column_config.NumberColumn(format="%d"),
            "Trained in": st.column_config.TextColumn(help="The whole pass, with the runs that trained beside it."),
            "Started": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
        key=table,
        on_select=lambda: choose([keys[i] for i in state[table].selection.rows]),
        selection_mode="multi-row",
        alt="Stored runs, the newest first",
    )
    if view.cut_off:
        st.caption(
            "A run that was cut off goes on from its checkpoint: press Resume at its job, "
            f"or type `uge runs resume {view.cut_off[0]}`."
        )
    state["runs_chosen"] = view.rows_of(state.get("runs_chosen", []))
    chosen = st.multiselect(
        "Chosen runs",
        keys,
        format_func=lambda key: ui.visible(view.labels.get(key) or str(key)),
        key="runs_chosen",
        help="Those ticked above, or typed here. Of two, the first is A.",
        wrap=True,
        placeholder="tick rows above, or type here",
    )
    state["runs_behind"] = view.behind(chosen)
    if chosen:
        with_chosen(view.behind(chosen), view)
        if len(chosen) == 1:
            note_of(view.behind(chosen)[0])
    if pairs := view.pairs(chosen):
        which = next(iter(pairs))
        if len(pairs) > 1:
            which = st.segmented_control("Compare", list(pairs), default=which, required=True, key="runs_pair_of")
        compared(*pairs[which], chosen)


def refold() -> None:
    """The runs that were chosen stay chosen when rows are opened or folded."""
    state["runs_chosen"] = state.get("runs_behind", [])


def choose(keys: list[str]) -> None:
    """What was ticked; those that stay chosen keep their order."""
    kept = [r for r in state.get("runs_chosen", []) if r in keys]
    state["runs_chosen"] = kept + [r for r in keys if r not in kept]


def with_chosen(chosen: list[str], view: Any) -> None:
    """Archive, bring back, delete."""
    trains = bool(view.trains.intersection(chosen))
    counted = f"{len(chosen)} run{'s' * (len(chosen) != 1)}"
    with st.container(horizontal=True):
        back = [r for r in chosen if r in view.archived]
        if len(back) < len(chosen):
            st.button(
                f"Archive {counted}",
                key="runs_archive",
                icon=":material/archive:",
                on_click=archive,
                disabled=trains,
                args=([r for r in chosen if r not in view.archived],),
                help="Out of lists and choices, until they are brought back. Nothing is removed.",
            )
        if back:
            st.button("Bring back", key="runs_back", icon=":material/unarchive:", on_click=archive, args=(back, True))
        with st.popover("Delete", icon=":material/delete:", disabled=trains):
            st.write("This removes for good:")
            st.markdown("\n".join(f"- {plain(line)}" for line in ui.removal(chosen, store)))
            st.button(
                f"Delete {counted}",
                key="runs_delete",
                icon=":material/delete_forever:",
                on_click=remove,
                args=(chosen,),
            )
    if trains:
        st.caption("A run that is being trained can be archived or deleted once it is done; Cancel ends it.")


def note_of(run: str) -> None:
    """What somebody wants to be read beside the run."""
    now = ui.notes_of(store, [run]).get(run, "")
    with st.form(f"note {run}", border=True):
        text = st.text_area(
            "Note",
            now,
            key=f"note_text_{run}",
            placeholder="Why this run was chosen, or what to know of it.",
            help="Kept in the store with the run, and printed in its reports. An empty one takes the note away.",
        )
        if st.form_submit_button("Pin the note", icon=":material/push_pin:"):
            try:
                ui.pin_note(store, run, text)
            except ui.UgeError as error:
                st.error(plain(str(error)), icon=":material/error:")
            else:
                st.toast("The note is pinned" if text.strip() else "The note is gone", icon=":material/push_pin:")


def compared(before: str, after: str, chosen: list[str]) -> None:
    """Two runs side by side."""
    view = ui.comparison_view(store, before, after)
    st.subheader("A against B")
    st.markdown(f"**A:** {plain(view.names[0])} · `{before}`  \n**B:** {plain(view.names[1])} · `{after}`")
    for sentence in view.sentences:
        st.markdown(plain(sentence))
    if view.address:
        with st.container(horizontal=True):
            for page, label, icon in INSPECT:
                st.page_link(page, label=label, icon=f":material/{icon}:", query_params=view.address)
    else:
        st.caption(f":material/link_off: {plain(view.no_address)}")
    pairing(before, after, view)
    if len(view.table):
        whole = len(view.full) > len(view.table) and st.toggle(
            f"All {len(view.full)} measures",
            key="runs_all",
            help="Each attacker, each variant; else what reports lead with.",
        )
        number = st.column_config.NumberColumn(format="%.3f")
        st.dataframe(
            ui.visible_cells(view.full if whole else view.table),
            hide_index=True,
            column_config=dict.fromkeys(("A", "B", "B - A", "Chance, A", "Chance, B", "Degree"), number)
            | {"p (Holm)": st.column_config.NumberColumn(format="%.2g")},
            alt=" ".join(view.sentences),
        )
        st.caption(view.caption)
    st.markdown("**Settings that differ**")
    if len(view.settings):
        st.dataframe(ui.visible_cells(view.settings), hide_index=True, alt="Settings that differ between A and B")
    else:
        st.caption("None: the same settings on the same data.")
    with st.container(horizontal=True):
        st.download_button(
            "Download CSV",
            view.csv,
            file_name=f"{before}-{after}.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/download:",
            key="runs_compared_csv",
        )
        st.button(
            "Swap A and B", icon=":material/swap_horiz:", key="runs_swap", on_click=choose_anew, args=(chosen[::-1],)
        )


def choose_anew(keys: list[str]) -> None:
    state["runs_chosen"] = keys


def pairing(before: str, after: str, view: Any) -> None:
    """Measured in pairs, being measured, or a button that measures."""
    if view.paired:
        return
    job = ui.comparing(store, before, after)
    if view.no_pairs:
        st.caption(f":material/info: Not measured in pairs. {plain(view.no_pairs)}")
    elif job:
        st.caption(f":material/schedule: Job {job.id} measures the two in pairs; the queue above shows how far it is.")
    else:
        st.button(
            "Measure the differences in pairs",
            key="runs_pair",
            icon=":material/join_inner:",
            on_click=pair,
            args=(before, after),
            help="Attacks both on the same people and ranks the same links, so that what makes them hard cancels: "
            "smaller differences show. Through the queue, for as long as two audits' attacks.",
        )


def pair(before: str, after: str) -> None:
    try:
        number = ui.enqueue_comparison(store, before, after)
        st.toast(f"Job {number} is in the queue", icon=":material/schedule:")
    except ui.UgeError as error:
        st.toast(plain(str(error)), icon=":material/error:")


def archive(ids: list[str], undo: bool = False) -> None:
    try:
        store.archive(ids, undo=undo)
        words = f"{len(ids)} run{'s' * (len(ids) != 1)} {'brought back' if undo else 'archived'}"
        st.toast(words, icon=f":material/{'un' * undo}archive:")
    except ui.UgeError as error:
        st.toast(plain(str(error)), icon=":material/error:")
    if not undo:
        state["runs_chosen"] = []


def remove(doomed: list[str]) -> None:
    try:
        removed = ui.delete(doomed, store)
        st.toast(f"Removed {len(removed)} things, the first: {plain(removed[0])}", icon=":material/delete:")
    except ui.UgeError as error:
        st.toast(plain(str(error)), icon=":material/error:")
    state["runs_chosen"] = []


st.title("Runs")
st.write("Train a grid of runs, watch it, and look after what is stored.")
st.header("Train")
with st.container(border=True):
    grid_form()
st.header("Queue")
now = ui.jobs_view(store)
state["runs_state"] = now.state
st.fragment(run_every=1 if now.open else None)(queue)()
st.header("History")
history()
