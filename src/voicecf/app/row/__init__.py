"""The page “One row”: what would have to change for this row to be elsewhere.

question   what is asked, as words of `voicecf.Rules`
answers    the answer, other ways, ways out, its map, each computed once
trying     columns whose values can be tried out
finding    rows by number, id or text
controls, page   what Streamlit draws
"""
