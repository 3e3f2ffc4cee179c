"""Are links predicted alike for all groups, and what does evening them out cost?"""

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


def draw(view: ui.GapView) -> None:
    """One metric: the sentences, the maps or bars, the table."""
    for letter, side in zip("AB", view.sides, strict=False):
        icon = {"more than chance": "difference", "not distinguishable from chance": "drag_handle"}.get(
            side.verdict, "question_mark"
        )
        st.markdown(f":material/{icon}: **{letter}: {plain(side.label)}, {side.verdict}.** {plain(side.sentence)}")
    if view.change:
        st.markdown(f":material/compare_arrows: {plain(view.change)}")
    if view.others:
        st.markdown(f"The same gap otherwise. {plain(' '.join(view.others))}")
    if view.layout == "map":
        names = list(view.alt)
        columns = st.columns(len(names)) if len(view.groups) <= 5 else [st.container() for _ in names]
        for name, column in zip(names, columns, strict=True):
            with column:
                titles = {"before": f"A: {view.sides[0].label}", "after": f"B: {view.sides[-1].label}"}
                st.markdown(f"**{plain(titles.get(name, 'B minus A'))}**")
                st.plotly_chart(
                    ui.gap_map(view, name, dark=dark),
                    config=ui.CHART_CONFIG,
                    alt=view.alt[name],
                    key=f"{view.metric} {name}",
                )
    elif view.layout == "bars":
        st.plotly_chart(
            ui.gap_bars(view, dark=dark), config=ui.CHART_CONFIG, alt=" ".join(view.alt.values()), key=view.metric
        )
    for words in (view.caption, *view.remarks):
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
        "Gaps of",
        list(forms),
        default=form,
        required=True,
        format_func=lambda f: forms[f],
        key="gaps",
        bind="query-params",
        help="Calibrated: probabilities fitted to links that training did not see. First ten: who is recommended to "
        "whom. No scaling of the vectors changes either. Raw: the paper's, which shorter vectors alone make smaller.",
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
for metric, column in zip(("dp", "eo"), st.columns(2), strict=True):
    cloud = ui.tradeoff_view(
        store, data=state["frame_data"], attribute=attribute, metric=metric, like=before, form=form
    )
    with column:
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
