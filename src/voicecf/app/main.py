"""The frame of the app, which Streamlit runs for every visitor: look, navigation, pages."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from voicecf.app.pages import compare, data, everyone, paper, row, segments, takeaway
from voicecf.app.session import page
from voicecf.app.style import BLOCKS, PAGE

LOGO = Path(__file__).with_name("logo.svg")


def main() -> None:
    """Draw the page that the visitor is on."""
    st.set_page_config(page_title="voicecf", page_icon=str(LOGO), layout="wide")
    st.html(f"<style>{BLOCKS}{PAGE}</style>")
    shown = {
        "data": ("Data", data.show, ""),
        "segments": ("Segments", segments.show, "table"),
        "row": ("One row", row.show, "table"),
        "everyone": ("Everyone", everyone.show, "table"),
        "compare": ("Compare", compare.show, "table"),
        "paper": ("Paper", paper.show, ""),
        "takeaway": ("Take away", takeaway.show, "table"),
    }
    pages = {
        name: st.Page(page(show, needs), title=title, url_path=name, default=name == "data")
        for name, (title, show, needs) in shown.items()
    }
    st.session_state["pages"] = pages
    st.navigation(list(pages.values()), position="top").run()


if __name__ == "__main__":
    main()
