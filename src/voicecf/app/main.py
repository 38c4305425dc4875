"""The frame of the app, which Streamlit runs for every visitor: look, navigation, pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from voicecf.app import session
from voicecf.app.campaign.page import show as show_campaign
from voicecf.app.data.page import show as show_data
from voicecf.app.method.page import show as show_method
from voicecf.app.row.page import show as show_row
from voicecf.app.segments.page import show as show_segments
from voicecf.app.style import BLOCKS, PAGE
from voicecf.app.takeaway.page import show as show_takeaway

LOGO = Path(__file__).with_name("logo.svg")


class Shown(NamedTuple):
    """A page: its name in addresses and in the navigation, its title, and what draws it."""

    path: str
    name: str
    title: str
    show: Callable[[Any], None]
    without: bool = False


PAGES = (
    Shown("data", "Data", "What would have to change?", show_data, without=True),
    Shown("segments", "Segments", "Segments", show_segments),
    Shown("row", "One row", "What would move this row?", show_row),
    Shown("campaign", "Campaign", "Campaign", show_campaign),
    Shown("takeaway", "Take away", "Take away", show_takeaway),
    Shown("method", "Method", "Method", show_method, without=True),
)


def main() -> None:
    """Draw the page that the visitor is on."""
    st.set_page_config(page_title="voicecf", page_icon=str(LOGO), layout="wide")
    st.html(f"<style>{BLOCKS}{PAGE}</style>")
    pages = {
        one.path: st.Page(
            session.page(one.show, one.title, one.without),
            title=one.name, url_path=one.path, default=one.path == "data",
        )
        for one in PAGES
    }  # fmt: skip
    st.session_state["pages"] = pages
    chosen = st.navigation(list(pages.values()), position="hidden")
    with st.container(horizontal=True, key="navigation"):
        for one in pages.values():
            st.page_link(one, query_params=session.address())
    chosen.run()


if __name__ == "__main__":
    main()
