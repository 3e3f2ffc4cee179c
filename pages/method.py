"""What does each number mean, how is it computed, and what does it not say?"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

import uge_core.dashboard as ui


def describe(kind: str, plugins: Sequence[Any]) -> None:
    """One of them at a time: thirty formulas and tables at once would make each visit of this page slow."""
    chosen = st.selectbox(
        kind, plugins, format_func=lambda p: f"{p.label} ({p.name})", help="type a few letters to find one"
    )
    st.caption(chosen.source)
    st.latex(chosen.formula)
    st.markdown(chosen.text)
    if chosen.look:
        st.caption(chosen.look)


st.title("Method")
st.write("What each number means, how it is computed, and what it does not say.")

page = ui.method_page()
numbers, methods, words, made = st.tabs(["Metrics", "Methods and attackers", "Glossary and keyboard", "Versions"])

with numbers:
    for metric in page.metrics:
        arrow = {"lower": "arrow_downward", "higher": "arrow_upward"}[metric.direction]
        st.header(metric.label)
        st.write(metric.sentence)
        if metric.formula:
            st.latex(metric.formula)
        if metric.limits:
            st.markdown(f"**What it does not say.** {metric.limits}")
        st.caption(f":material/{arrow}: {metric.direction} is better · `{metric.name}` · {metric.source}")
with methods:
    st.header("Which method")
    st.markdown(page.which)
    st.header("Debiasing methods")
    st.dataframe(
        ui.visible_cells(page.overview), hide_index=True, alt="What each method works through, serves and refuses"
    )
    describe("Method", page.methods)
    st.header("Left out")
    for label, formula, text in page.left_out:
        with st.expander(f"**{label}**"):
            st.latex(formula)
            st.markdown(text)
    st.header("Attackers")
    for attacker in page.attackers:
        with st.expander(f"**{attacker.label}** `{attacker.name}`"):
            st.markdown(attacker.text)
    st.header("Backbones")
    describe("Backbone", page.backbones)
with words:
    st.header("Glossary")
    for term, meaning in page.glossary.items():
        st.markdown(f"**{term}.** {meaning}")
    st.header("Keyboard")
    for keys, action in page.keys.items():
        st.markdown(f"`{keys}` {action}")
with made:
    st.dataframe(
        ui.visible_cells([{"Package": name, "Version": version} for name, version in page.versions.items()]),
        hide_index=True,
        width="content",
        alt="Versions of this installation",
    )
