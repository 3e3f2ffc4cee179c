"""Are links predicted alike for all groups, and what does evening them out cost?"""

from typing import Any

import streamlit as st

import uge_core.dashboard as ui

plain = ui.plain_text
state = st.session_state
dark = st.context.theme.type == "dark"

st.title("Fairness")
st.write("Are links predicted alike for all groups, and did the other run change that?")

store = ui.RunStore()
if not state["frame_before"]:
    st.info("No audited run yet. The Overview page shows the command that makes a first one.", icon=":material/info:")
    st.stop()
if not state["frame_attribute"]:
    st.info("The audited runs' data have no attribute of people, so there are no groups.", icon=":material/info:")
    st.stop()


ICONS = {"more than chance": "difference", "not distinguishable from chance": "drag_handle"}
MAP_CONFIG = {**ui.CHART_CONFIG, "displayModeBar": False}  # it would lie on the first row


def one_map(view: ui.GapView, name: str, label: str) -> None:
    with st.container(key=f"{view.metric}-{name}", width="content"):
        st.markdown(f"**{plain(label)}**")
        st.plotly_chart(
            ui.gap_map(view, name, dark=dark),
            config=MAP_CONFIG,
            alt=view.alt[name],
            key=f"{view.metric} {name}",
            width=ui.map_size(view)[0],
        )


def letter_of(side: Any) -> str:
    """Run A or run B; where one of them has no such figure, the other keeps its letter."""
    return "A" if side.run_id == before else "B"


def maps(view: ui.GapView) -> None:
    """Up to four groups side by side, where that has room; else one at a time."""
    labels = {
        name: f"{letter_of(side)}: {side.label}" for name, side in zip(("before", "after"), view.sides, strict=False)
    }
    labels["difference"] = "B minus A, on the same scale"
    shown = {name: labels[name] for name in view.alt}
    with st.container(horizontal=True, key=f"maps-{view.metric}"):
        if len(view.groups) <= 4:
            for name, label in shown.items():
                one_map(view, name, label)
            return
        name = st.segmented_control(
            "Map",
            list(shown),
            default="after" if "after" in shown else "before",
            required=True,
            format_func=lambda name: labels[name].partition(",")[0].partition(":")[0],
            key=f"map_{view.metric}",
            bind="query-params",
            label_visibility="collapsed",
        )
        one_map(view, name if name in shown else next(iter(shown)), shown.get(name, next(iter(shown.values()))))


def draw(view: ui.GapView) -> None:
    """One metric: the picture, then what it says, folded, and the table."""
    if view.layout == "map":
        maps(view)
    elif view.layout == "bars":
        st.plotly_chart(
            ui.gap_bars(view, dark=dark), config=ui.CHART_CONFIG, alt=" ".join(view.alt.values()), key=view.metric
        )
    for side in view.sides:
        icon = ICONS.get(side.verdict, "question_mark")
        said = side.sentence.removeprefix("Not enough evidence: ")
        st.markdown(f":material/{icon}: **{letter_of(side)}, {side.verdict}.** {plain(said)}")
    for words in view.missing:
        st.markdown(f":material/question_mark: {plain(words)}")
    if view.change:
        st.markdown(f":material/compare_arrows: {plain(view.change)}")
    if view.others:
        st.caption(f"The same gap measured otherwise. {plain(' '.join(view.others))}")
    with st.expander("What is drawn", icon=":material/notes:"):
        for words in (view.caption, *view.remarks):
            if words:
                st.caption(plain(words))
    if view.layout == "none":
        return
    with st.expander("Show table", icon=":material/table:", expanded=view.ranked or view.layout == "table"):
        st.dataframe(ui.visible_cells(ui.ranked_cells(view)), hide_index=True, alt=view.title)
    st.download_button(
        "Download CSV",
        view.csv,
        file_name=f"{view.metric}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key=f"{view.metric} csv",
    )


attribute, before, after = state["frame_attribute"], state["frame_before"], state["frame_after"]
forms = ui.gap_forms(store, attribute=attribute, before=before, after=after)
form = next(iter(forms))
if len(forms) > 1:
    form = st.segmented_control(
        "Measured as",
        list(forms),
        default=form,
        required=True,
        format_func=lambda f: forms[f],
        key="gaps",
        bind="query-params",
        help="Mean: of probabilities fitted to links that training did not see. Thresholded: the share of pairs predicted "
        "as links. First ten: who is recommended to whom. Relative: how far one pair of groups' scores stand out from the "
        "others'. No scaling of the vectors changes these. Raw: the paper's, which shorter vectors alone make smaller.",
    )
views = {
    metric: ui.fairness_view(store, metric=metric, attribute=attribute, before=before, after=after, form=form)
    for metric in ("dp", "eo")
}
for words in dict.fromkeys(words for view in views.values() if view for words in view.unfit):
    st.warning(plain(words), icon=":material/warning:")
for metric, view in views.items():
    about = ui.metric_help(metric)
    st.header(plain(view.title) if view else about.label, help=f"{about.sentence} {about.limits}")
    if view:
        draw(view)
    else:
        st.write(f"Not measured for {plain(attribute)} in these runs.")

st.header("Differences between groups against link quality")
for metric in ("dp", "eo"):  # each as wide as the page, as the numbers on their points need the room
    cloud = ui.tradeoff_view(
        store, data=state["frame_data"], attribute=attribute, metric=metric, like=before, form=form
    )
    with st.container():
        st.markdown(f"**{plain(cloud.title)}**")
        for words in cloud.remarks if cloud.table.empty else ():
            st.caption(plain(words))
        if len(cloud.table):
            st.plotly_chart(
                ui.tradeoff_figure(cloud, dark=dark, height=480),
                config=ui.CHART_CONFIG,
                alt=cloud.alt,
                key=f"{metric} cost",
            )
            for words in (cloud.caption, *cloud.remarks):
                st.caption(plain(words))
            with st.expander("Show table", icon=":material/table:"):
                st.dataframe(ui.visible_cells(cloud.table), hide_index=True, alt=cloud.alt)
            st.download_button(
                "Download CSV",
                cloud.csv,
                file_name=f"{metric}-ndcg.csv",
                mime="text/csv",
                on_click="ignore",
                icon=":material/download:",
                key=f"{metric} cost csv",
            )
