"""What does less leakage cost in link quality, and which lambda is worth it?"""

import time
from typing import Any

import streamlit as st

import uge_core.dashboard as ui

EXPOSURES = {"unseen": "People hidden from training", "seen": "People training saw"}
AHEAD = 1.0  # seconds that drawing ahead for the slider may take
QUALITIES = {"matched": "Matched", "degree": "Degree-matched", "usual": "Usual"}
METRICS = {name: ui.TRADEOFF_METRICS[name] for name in ("auc", "micro_f1", "normalised")}

state = st.session_state
plain = ui.plain_text

st.title("Trade-off")
st.write("What does less leakage cost in link quality, and which lambda is worth it?")

store = ui.RunStore()
if not state["frame_before"]:
    st.info("No audited run yet. The Overview page shows the command that makes a first one.", icon=":material/info:")
    st.stop()
if not state["frame_attribute"]:
    st.info("The audited runs' data have no attribute of people, so nothing can be read.", icon=":material/info:")
    st.stop()


@st.cache_resource
def live_slider() -> Any:
    """The slider that draws while it is dragged, registered once."""
    assets = ui.live_assets()
    return st.components.v2.component("uge_lambda", html=assets["html"], css=assets["css"], js=assets["js"])


def become_b(series: str, lam: float | None) -> None:
    """Run B, the method, λ, a click and the address are one choice: what is measured there becomes run B."""
    run = state["tradeoff_runs"].get((series, lam)) or state["tradeoff_runs"].get((series, None))
    if run:
        state["frame_after"] = state["tradeoff_of"] = st.query_params["after"] = run
        state["frame_written"]["after"] = run


def choose(series: str, lam: float | None) -> None:
    """Puts the method, and the λ if it has one, into their fields."""
    ui.set_fields(state, {"method": series} if lam is None else {"method": series, "lambda": lam})
    if lam is not None:
        state["lambda_live"] = lam


def pick() -> None:
    """A click on a measured point chooses its method and lambda."""
    turn = state.get("tradeoff_turn", 0)
    points = state[f"tradeoff {turn}"].selection.points
    if points and points[0].get("customdata"):
        series, lam = points[0]["customdata"][6], points[0]["customdata"][5]
        choose(series, lam)
        become_b(series, lam)
    # A chart of its own for the next click: the same point can be clicked again, and none stays faded.
    state["tradeoff_turn"] = turn + 1


def moved() -> None:
    """Another lambda of the method."""
    become_b(state["method"], state.get("lambda", state.get("lambda_live")))


def other_method() -> None:
    """Another method, at the lambda nearest to the one before that was measured of it."""
    lams = [lam for series, lam in state["tradeoff_runs"] if series == state["method"] and lam is not None]
    if lams:
        now = state.get("lambda", state.get("lambda_live")) or 0.0
        choose(state["method"], min(lams, key=lambda lam: abs(lam - now)))
    moved()


def follow() -> None:
    """Where the live slider was let go."""
    choose(state["method"], state["live"].lam)
    st.query_params["lambda"] = str(state["live"].lam)
    moved()


def settle(view: ui.TradeoffView) -> None:
    """The method and λ of run B, where that was chosen elsewhere; a λ in an address wins over its run's."""
    state["tradeoff_runs"] = {(p.series, p.lam): p.runs[0].id for p in view.points}
    point = view.point_of(state["frame_after"])
    first = "tradeoff_of" not in state
    # Another page forgets the method, which no address holds.
    if point and (state.get("tradeoff_of") != state["frame_after"] or "method" not in state):
        asked = st.query_params.get("lambda") if first else None
        lam = next((v for v in view.lambdas if asked is not None and str(v) == asked), point.lam)
        choose(point.series, lam)
        if lam != point.lam:
            become_b(point.series, lam)
    state["tradeoff_of"] = state["frame_after"]
    if state.get("method") not in view.all_series:
        choose(next(iter(view.series or view.all_series)), None)


@st.cache_data(max_entries=500, show_spinner=False)
def gap(metric: str, attribute: str, before: str, after: str, stamp: str, dark: bool) -> tuple[str, str, str] | None:
    """Words, drawing and caption of a run's cells, on a scale with the untreated one's; kept as the slider comes back."""
    cells = ui.fairness_view(store, metric=metric, attribute=attribute, before=before, after=after)
    if cells is None or cells.layout == "table":
        return None
    side = next((s for s in cells.sides if s.run_id == after), None)
    if side is None:  # the other run's figure is not this one's
        return f"**{plain(cells.title)}.** {plain(' '.join(cells.missing))}", "", ""
    if cells.layout == "none":
        return f"**{plain(cells.title)}.** {plain(side.sentence)}", "", ""
    which = "after" if side is not cells.sides[0] else "before"
    drawn = ui.gap_light(cells, which, dark=dark)
    return f"**{plain(side.label)}.** {plain(side.sentence)}", drawn, plain(cells.caption)


def draw_gaps(view: ui.TradeoffView, run: str, stamp: str, dark: bool) -> None:
    """How unequal links are predicted at the chosen lambda."""
    for metric, column in zip(("dp", "eo"), st.columns(2), strict=True):
        parts = gap(metric, view.attribute, state["frame_before"], run, stamp, dark)
        if parts:
            words, drawn, caption = parts
            with column:
                st.markdown(words)
                if drawn:
                    st.html(drawn)
                    st.caption(caption)


def fields(view: ui.TradeoffView) -> tuple[str, float | None, bool]:
    """The method, its λ where it has several, and whether the slider that follows the drag is drawn."""
    left, middle, right = st.columns([3, 6, 2], vertical_alignment="bottom")
    with ui.sending(state, ("method", "lambda")):
        series = left.selectbox(
            "Method",
            view.all_series,
            format_func=ui.visible,
            key="method",
            on_change=other_method,
            help="With its λ this is run B, here and on every other page.",
        )
        if series not in view.series:
            return series, None, False
        if right.toggle(
            "Live",
            key="live_on",
            bind="query-params",
            help="Numbers and curve follow the slider while it is dragged; the charts below when it is let go.",
        ):
            data = ui.live_data(view, series, state.setdefault("lambda_live", state.get("lambda", view.lambdas[0])))
            live_slider()(data=data, key="live", on_lam_change=follow)
            return series, data["points"][data["chosen"]]["lam"], True
        state.pop("lambda_live", None)
        if state.get("lambda") not in view.lambdas:
            state.pop("lambda", None)
        lam = middle.select_slider(
            "λ",
            view.lambdas,
            key="lambda",
            bind="query-params",
            on_change=moved,
            format_func=lambda v: f"{v:g}",
            help="Snaps to trained values; nothing between them is made up. Arrow keys move it.",
        )
        return series, lam, False


@st.fragment
def explore(view: ui.TradeoffView, figure: Any, dark: bool) -> None:
    """The chart and the lambda explorer; only this part runs when the slider moves.

    `figure` stays as it is then, so that the browser does not draw it again: the ring is shown by a style sheet.
    """
    chosen = None
    if view.all_series:
        series, lam, live = fields(view)
        chosen = ui.lambda_view(view, series, lam)
        if chosen.point and not live:
            figures = st.container(horizontal=True)  # side by side where there is room
            for name, value, ends, change in chosen.figures:
                column = figures.container(width=212)
                column.metric(
                    name, value, change, delta_color="off", delta_description="from no debiasing" if change else None
                )
                column.caption(ends)
            st.markdown(plain(chosen.sentence))
        elif not chosen.point:
            st.info(plain(chosen.sentence), icon=":material/model_training:")
        if series in view.series:
            with st.popover("Train another λ", icon=":material/model_training:"):
                train_another(view, series, lam if not chosen.point else None)
    with st.container(key="tradeoff_chart"):
        st.plotly_chart(
            figure,
            config=ui.CHART_CONFIG,
            alt=view.alt,
            key=f"tradeoff {state.get('tradeoff_turn', 0)}",
            on_select=pick,
            selection_mode="points",
        )
    st.caption(plain(f"{view.caption} Ring: the chosen λ. A click on a point makes it run B."))
    for remark in view.remarks:
        st.caption(plain(remark))
    if chosen and chosen.point:
        ring = ui.ring_style(view, (chosen.point.series, chosen.point.lam), ".st-key-tradeoff_chart")
        if chosen.bars and len(chosen.bars.table):
            st.header(plain(chosen.bars.title))
            st.html(ring + ui.leakage_light(chosen.bars, dark=dark))
            st.caption(plain(chosen.bars.caption))
        run, seeds = chosen.point.runs[0], len(chosen.point.runs)
        if seeds > 1:
            st.caption(f"Below: seed {run.config['seed']}, one of the {seeds} whose mean the figures above are.")
        draw_gaps(view, run.id, str(run.finished), dark)


def draw_ahead(view: ui.TradeoffView, dark: bool) -> None:
    """What the slider can show next, drawn while the reader looks at the page.

    The method that is chosen comes first.
    """
    until = time.monotonic() + AHEAD
    for point in sorted(view.points, key=lambda p: p.series != state.get("method")):
        if point.lam is not None:
            for metric in ("dp", "eo"):
                run = point.runs[0]
                gap(metric, view.attribute, state["frame_before"], run.id, str(run.finished), dark)
                if time.monotonic() > until:
                    return


def train_another(view: ui.TradeoffView, series: str, missing: float | None) -> None:
    """Puts a lambda that nobody trained into the queue, with the settings and seeds of the series."""
    lam = st.number_input(
        f"λ of {plain(series)}",
        min_value=0.0,
        value=missing if missing is not None else 0.6,
        step=0.1,
        format="%g",
        key=f"another {series} {missing}",
        help="The weight of the penalty; everything else is as in the series.",
    )
    offer = ui.lambda_offer(view, series, lam)
    st.caption(plain(offer.refusal or offer.words))
    if st.button(f"Train λ = {lam:g}", disabled=offer.refusal is not None, icon=":material/play_arrow:"):
        st.success(f"Job {ui.enqueue_lambda(offer, store)} is in the queue; the Runs page shows how far it is.")
    if missing is not None:
        st.caption("The same on the command line:")
        st.code(ui.lambda_view(view, series, missing).command, language="bash", wrap_lines=True)


row = st.container(horizontal=True)
metric = row.segmented_control(
    "Leakage as",
    list(METRICS),
    default="auc",
    required=True,
    format_func=lambda m: METRICS[m],
    key="measure",
    bind="query-params",
    help="Normalised: 0 is always answering the commonest value, 1 is always being right.",
)
exposure = row.segmented_control(
    "Measured on",
    list(EXPOSURES),
    default="unseen",
    required=True,
    format_func=lambda e: EXPOSURES[e],
    key="on",
    bind="query-params",
    help="Hidden: training did not see the tested people's values. Saw: it may have, as in the paper, and a method "
    "that did looks better than it is.",
)
quality = row.segmented_control(
    "Link quality (NDCG@10)",
    list(ui.QUALITIES),
    default="matched",
    required=True,
    format_func=lambda q: QUALITIES[q],
    key="quality",
    bind="query-params",
    help="Matched: each held-out link among strangers of the friend's own group, so that knowing the attribute gains "
    "nothing. Degree-matched: of its decile of degree too. Usual: among all strangers, as in the paper, which also "
    "pays for reading the attribute.",
)
view = ui.tradeoff_view(
    store,
    data=state["frame_data"],
    attribute=state["frame_attribute"],
    metric=metric,
    exposure=exposure,
    setting=state.get("setting"),
    like=state["frame_before"],
    quality=quality,
)
if len(view.settings) > 1:
    if state.get("setting") not in view.settings:
        ui.set_fields(state, {"setting": view.setting})
    row.selectbox(
        "Setting",
        view.settings,
        format_func=ui.visible,
        key="setting",
        help="Only runs that share all of this are compared.",
    )
st.header(plain(view.title))
for words in view.remarks if view.table.empty else ():
    st.caption(plain(words))
if len(view.table):
    dark = st.context.theme.type == "dark"
    settle(view)
    if state["frame_after"] and not view.point_of(state["frame_after"]):
        st.caption(
            ":material/info: Run B is not in this chart: it treats another attribute, has other settings, or was not "
            "measured this way."
        )
    explore(view, ui.tradeoff_figure(view, rings=True, dark=dark), dark)
    with st.expander("Show table", icon=":material/table:"):
        st.dataframe(ui.visible_cells(view.table), hide_index=True, alt=view.alt)
    st.download_button(
        "Download CSV",
        view.csv,
        file_name="tradeoff.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
    draw_ahead(view, dark)
