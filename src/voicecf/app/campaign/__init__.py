"""The page “campaign”: whom could we move, by what levers, at what effort.

plan       what is asked, and the record of a run, as plain values
runs       runs of a project: begun, gone on with, kept, renamed, deleted
summary    who can move, levers, medians, how far a budget goes
lists      the list to act on; the easiest rows in words
telling    what a project's runs say, each computed once; files
code, report, cards, pictures   a run as Python, a document, HTML and a picture
controls, page   what Streamlit draws
"""
