"""The page “One row”: what would have to change for this row to be elsewhere.

question   what is asked: one value, from which answer and code are made
asking     answers to a project's question, each computed once
answers    answers in words, other ways, obstacles
changes    what an answer changes, in units
tracks     where a change lies among all rows
finding    rows by number, id or text
whatif     the segment that changed values would be in
mapping    which slice of the segments a map shows; `picture` draws it
"""
