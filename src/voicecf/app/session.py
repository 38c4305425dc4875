"""Between Streamlit and a project: the address, controls that are tied to choices, pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import streamlit as st

from voicecf.app import blocks
from voicecf.app.project import Project, Store, StoreError
from voicecf.app.project.store import usual_folder
from voicecf.app.style import DAY, NIGHT
from voicecf.errors import VoiceError
from voicecf.plots import Theme

LOGGER = logging.getLogger(__name__)
# What names a project in an address: /row?s=k3v9…
PARAMETER = "s"
FAILED = (
    "Something went wrong here that should not have. Another table, or other columns, may work; "
    "the terminal that the app was started from has the details."
)
NO_TABLE = "There is no table yet. Choose one on the page “Data”."


@cache
def store() -> Store:
    """Return where projects are kept."""
    return Store(usual_folder())


def address(id: str = "") -> dict[str, str]:
    """Return what an address says besides the page: which project, this one unless another."""
    id = id or st.query_params.get(PARAMETER, "")
    return {PARAMETER: id} if id else {}


def go(page: str, id: str = "") -> None:
    """Go to a page, with another project or the present one."""
    st.switch_page(st.session_state["pages"][page], query_params=address(id))


def tied(name: str, value: Any, change: Callable[[Any], None]) -> dict[str, Any]:
    """Tie a widget to a value: it always shows it, and what the visitor does changes it.

    Streamlit keeps `change` for as long as the visitor stays: it may hold on to a project, which is
    light, but not to tables or answers; it asks the project for these when it is called.
    """
    key = f"control {name}"
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: change(st.session_state[key])}


def theme() -> Theme:
    """Return what to draw with on the visitor's page, light or dark."""
    return NIGHT if getattr(st.context.theme, "type", None) == "dark" else DAY


def page(show: Callable[[Any], None], title: str, without: bool = False) -> Callable[[], None]:
    """Make a page that is shown with a project, keeps what was chosen, and shows no stack trace.

    Parameters
    ----------
    show : callable
        Draws the page of a project.
    title : str
        Stands above it.
    without : bool
        Whether there is something to draw without a project; then it is given None.
    """

    @wraps(show)
    def shown() -> None:
        now, problem = _present()
        st.title(title)
        if now is not None:
            now.save()  # what a control has changed is a step that can be taken back
            with st.container(horizontal=True, vertical_alignment="center"):
                st.html(blocks.about_table(now.choices.table), width="content")
                if now.can_undo:
                    st.button(
                        "Undo",
                        key="undo",
                        type="tertiary",
                        icon=":material/undo:",
                        help="Take the last change back.",
                        on_click=now.undo,
                    )
        try:
            if problem or (now is None and not without):
                st.html(blocks.notice(problem or NO_TABLE))
            if now is not None or without:
                show(now)
        except VoiceError as error:
            st.html(blocks.notice(str(error)))
        except MemoryError:
            st.html(
                blocks.notice("This needs more memory than there is. Use fewer rows or columns.")
            )
        except Exception:
            LOGGER.exception("a page failed")
            st.html(blocks.notice(FAILED))
        finally:
            if now is not None:
                now.save()

    return shown


def _present() -> tuple[Project | None, str]:
    """Return the visitor's project, or why there is none although the address names one."""
    id = st.query_params.get(PARAMETER, "")
    try:
        return (store().open(id) if id else None), ""
    except StoreError as error:
        return None, str(error)
