"""The frame every page stands in: page configuration, navigation, which store, data, attribute and runs are shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

import uge_core.dashboard as ui

FRAME = ("data", "attribute", "before", "after")
RUNS = ("before", "after")
WIDTHS = {"data": 150, "attribute": 135, "before": 222, "after": 222, "seed": 76}
PICKERS = {
    "": "rows",
    "leakage": "rows",
    "tradeoff": "ringed",
    "report": "rows",
    "fairness": "one",
    "projection": "one",
    "whatif": "one",
}
"""Pages that are about the runs chosen above them. Some show one run of several seeds at a time; on one, run B is
chosen in its chart."""
# The dark theme's blue is readable as text; what Streamlit writes on it in white is not.
# Streamlit leaves six lines above a page; prose is read best at some seventy-five characters a line.
LAYOUT = """<style>
[data-testid="stMainBlockContainer"] { padding-top: 3.6rem; }
[data-testid="stMainBlockContainer"] :is(p, li) { max-width: 75ch; }
[data-testid="stButtonGroup"] [role="radiogroup"] { flex-wrap: wrap; }
[class*="st-key-maps-"] { overflow-x: auto; }
</style>"""
ON_BLUE = """<style>
[data-testid="stBaseButton-primary"]:enabled, [data-testid="stBaseButton-primary"]:enabled p, [data-tag], [data-tag] * { color: #0E1117 !important; }
</style>"""


def choose(store: ui.RunStore, drawn: str) -> None:
    """The frame's pickers, in step with the address; without `drawn` the choices alone, "one" with the seed.

    What the address newly says wins over the pickers, so that links and the browser's back button
    work; on a change of page, which empties the address, it is filled again. Other pages read
    ``st.session_state["frame_..."]``.
    """
    state = st.session_state
    written = state.get("frame_written", {})
    rows = state.get("frame_rows", {})
    asked: dict[str, str | None] = {}
    for name in FRAME:
        url, shown = st.query_params.get(name), written.get(name)
        # A page without this picker has forgotten what was picked.
        picked = state.get(f"pick_{name}", rows.get(name) if name in RUNS else shown)
        # A picker of runs holds a row; which of its runs is shown stays as long as the row does.
        kept = shown if name in RUNS and picked == rows.get(name) else picked
        asked[name] = url if url is not None and url != shown else kept
        if name in RUNS and picked != rows.get(name):
            state.setdefault(
                "frame_seed", state.get("frame_seed_shown")
            )  # a row that is newly picked shows the same seed
    if written.get("data") not in (None, asked["data"]):
        # Attribute and runs of the data shown before mean nothing in others.
        asked |= {name: None for name in FRAME[1:] if asked[name] == written.get(name)}
    frame = ui.frame(store, **asked, seed=state.pop("frame_seed", None))
    chosen = {name: getattr(frame, name) for name in FRAME}
    state["frame_rows"] = {name: _row(frame, chosen[name]) for name in RUNS}
    options: dict[str, tuple[str, Mapping[str, str], str]] = {
        "data": ("Data", frame.datasets, "The graph whose runs are shown."),
        "attribute": ("Audited attribute", {a: a for a in frame.attributes}, "What the pages under Inspect are about."),
        "before": ("Run A (before)", frame.runs, "Pages that compare two runs start from this one."),
        "after": ("Run B (after)", frame.runs, "And show what this one changes."),
    }
    row = st.container(horizontal=True, vertical_alignment="bottom", key="frame")
    for name, (label, labels, help_text) in options.items():
        value = chosen[name]
        state[f"frame_{name}"] = value
        if value is None:
            st.query_params.pop(name, None)
            continue
        if st.query_params.get(name) != value:
            st.query_params[name] = value
        if drawn == "ringed" and name == "after":
            continue  # chosen on the page
        if drawn:
            state[f"pick_{name}"] = state["frame_rows"].get(name, value)
            words = {key: ui.visible(text) for key, text in labels.items()}
            row.selectbox(
                label,
                list(labels),
                key=f"pick_{name}",
                format_func=words.__getitem__,
                help=help_text,
                width=WIDTHS[name],
            )
    if frame.seed is not None and drawn == "one":
        state["pick_seed"] = frame.seed
        row.selectbox(
            "Seed",
            seeds_shown(frame, state["frame_rows"]),
            key="pick_seed",
            on_change=lambda: state.update(frame_seed=state["pick_seed"]),
            help="Of runs that differ in their seed alone, the one that is shown here.",
            width=WIDTHS["seed"],
        )
    if drawn and frame.data is not None:
        with row.container(width="content", key="copy-link"):
            link_button()(key="copy_link")
    state["frame_seed_shown"] = frame.seed
    state["frame_written"] = chosen
    state["frame_runs"] = [i for of in frame.seeds.values() for i in of.values()]
    state["frame_messages"] = list(frame.messages)


@st.cache_resource
def link_button() -> Any:
    """Registered once."""
    assets = ui.copy_link_assets()
    return st.components.v2.component("uge_copy_link", html=assets["html"], css=assets["css"], js=assets["js"])


def seeds_shown(frame: Any, rows: Mapping[str, str | None]) -> list[int]:
    """The seeds to choose from: those that both rows have, where both have several."""
    several = [set(of) for key in dict.fromkeys(rows.values()) if len(of := frame.seeds.get(key, ())) > 1]
    common = set.intersection(*several)
    return sorted(common | {frame.seed})


def _row(frame: Any, run_id: str | None) -> str | None:
    """The key of the row that a run is in."""
    return next((key for key, of in frame.seeds.items() if run_id in of.values()), run_id)


def tour(store: ui.RunStore) -> None:
    """Where the tour is, above the page."""
    at = st.session_state["tour"]
    _, title, words = ui.TOUR_STOPS[at]
    with st.container(border=True, key="tour"):
        st.markdown(f":material/route: **Stop {at + 1} of {len(ui.TOUR_STOPS)}: {title}.** {words}")
        with st.container(horizontal=True):
            if at + 1 < len(ui.TOUR_STOPS) and st.button(
                f"Next stop: {ui.TOUR_STOPS[at + 1][1]}",
                key="tour_next",
                type="primary",
                icon=":material/arrow_forward:",
            ):
                st.session_state["tour"] = at + 1
                st.switch_page(str(here / f"{ui.TOUR_STOPS[at + 1][0]}.py"))
            if st.button("End the tour", key="tour_end", icon=":material/close:"):
                st.session_state.pop("tour")
                ui.end_tour(store)
                st.rerun()


def sign_in() -> None:
    """Nothing of a page is shown before its reader has signed in, where a sign-in is set up in secrets.toml."""
    if "is_logged_in" not in st.user:
        return
    if not st.user.is_logged_in:
        st.title("Sign in")
        st.write("This dashboard shows what embeddings of people give away; its readers are known by name.")
        st.button("Sign in", on_click=st.login, type="primary", icon=":material/login:")
        st.stop()
    with st.sidebar:
        st.caption(f"Signed in as {ui.plain_text(str(st.user.get('email') or st.user.get('name') or 'a reader'))}")
        st.button("Sign out", on_click=st.logout, type="tertiary", icon=":material/logout:")


st.set_page_config(page_title="UGE audit", page_icon="⚖️", layout="wide")
st.html(LAYOUT)
if st.context.theme.type == "dark":
    st.html(ON_BLUE)
sign_in()

here = Path(__file__).resolve().parent
runs = st.Page(here / "runs.py", title="Runs", icon=":material/model_training:", url_path="runs")
page = st.navigation(
    {
        "Start": [
            st.Page(here / "overview.py", title="Overview", icon=":material/home:", default=True),
            st.Page(here / "data.py", title="Data", icon=":material/database_upload:", url_path="data"),
        ],
        "Train": [runs],
        "Inspect": [
            st.Page(here / "leakage.py", title="Leakage", icon=":material/visibility:", url_path="leakage"),
            st.Page(here / "fairness.py", title="Fairness", icon=":material/balance:", url_path="fairness"),
            st.Page(here / "tradeoff.py", title="Trade-off", icon=":material/show_chart:", url_path="tradeoff"),
            st.Page(here / "projection.py", title="Projection", icon=":material/scatter_plot:", url_path="projection"),
            st.Page(here / "whatif.py", title="What-if", icon=":material/edit_note:", url_path="whatif"),
        ],
        "Deliver": [st.Page(here / "report.py", title="Report", icon=":material/description:", url_path="report")],
        "Help": [
            st.Page(here / "method.py", title="Method", icon=":material/help:", url_path="method"),
            st.Page(here / "paper.py", title="Paper", icon=":material/menu_book:", url_path="paper"),
        ],
    }
)
store = ui.RunStore()
try:
    ui.first_start(store)
    choose(store, PICKERS.get(page.url_path, ""))
    with st.sidebar:
        ui.keep_queue_going(store)
        if words := ui.queue_words(store):
            st.page_link(runs, label=words, icon=":material/progress_activity:", help="Training jobs of this store.")
        st.caption(f":material/database: Runs in `{store.root}`")
    if "tour" in st.session_state:
        tour(store)
    for message in st.session_state["frame_messages"]:
        st.warning(ui.plain_text(message), icon=":material/link_off:")
    with ui.sending(st.session_state, page=page.url_path):
        page.run()
except ui.UgeError as error:
    st.error(ui.plain_text(str(error)), icon=":material/error:")
