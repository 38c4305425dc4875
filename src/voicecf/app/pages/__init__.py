"""The pages, one a file; each has a `show` that Streamlit runs from top to bottom."""
