"""The frame every page stands in: page configuration, navigation, which store, data, attribute and runs are shown."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

import uge_core.dashboard as ui

FRAME = ("data", "attribute", "before", "after")
# The dark theme's blue is readable as text; what Streamlit writes on it in white is not.
ON_BLUE = """<style>
[data-testid="stBaseButton-primary"]:enabled, [data-testid="stBaseButton-primary"]:enabled p, [data-tag], [data-tag] * { color: #0E1117 !important; }
</style>"""


def choose(store: ui.RunStore) -> None:
    """The frame's pickers, in step with the address.

    What the address newly says wins over the pickers, so that links and the browser's back button
    work; on a change of page, which empties the address, it is filled again. Other pages read
    ``st.session_state["frame_..."]``.
    """
    state = st.session_state
    written = state.get("frame_written", {})
    asked: dict[str, str | None] = {}
    for name in FRAME:
        url, picked = st.query_params.get(name), state.get(f"frame_{name}")
        asked[name] = url if url is not None and url != written.get(name) else picked
    if written.get("data") not in (None, asked["data"]):
        # Attribute and runs of the data shown before mean nothing in others.
        asked |= {name: None for name in FRAME[1:] if asked[name] == written.get(name)}
    frame = ui.frame(store, **asked)
    options: dict[str, tuple[str, Mapping[str, str], str]] = {
        "data": ("Data", frame.datasets, "The graph whose runs are shown."),
        "attribute": ("Audited attribute", {a: a for a in frame.attributes}, "What the pages under Inspect are about."),
        "before": ("Run A (before)", frame.runs, "Pages that compare two runs start from this one."),
        "after": ("Run B (after)", frame.runs, "And show what this one changes."),
    }
    for name, (label, labels, help_text) in options.items():
        value = getattr(frame, name)
        state[f"frame_{name}"] = value
        if value is not None:
            shown = {key: ui.visible(words) for key, words in labels.items()}
            st.selectbox(label, list(labels), key=f"frame_{name}", format_func=shown.__getitem__, help=help_text)
            if st.query_params.get(name) != value:
                st.query_params[name] = value
        elif name in st.query_params:
            del st.query_params[name]
    state["frame_written"] = {name: getattr(frame, name) for name in FRAME}
    state["frame_runs"] = list(frame.runs)
    state["frame_messages"] = list(frame.messages)


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
        "Help": [st.Page(here / "method.py", title="Method", icon=":material/help:", url_path="method")],
    }
)
store = ui.RunStore()
try:
    ui.first_start(store)
    with st.sidebar:
        choose(store)
        ui.keep_queue_going(store)
        if words := ui.queue_words(store):
            st.page_link(runs, label=words, icon=":material/progress_activity:", help="Training jobs of this store.")
        st.caption(f":material/database: Runs in `{store.root}`")
    for message in st.session_state["frame_messages"]:
        st.warning(ui.plain_text(message), icon=":material/link_off:")
    page.run()
except ui.UgeError as error:
    st.error(ui.plain_text(str(error)), icon=":material/error:")
