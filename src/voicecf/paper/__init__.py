"""The paper, to the digit: its protocol, its printed numbers, its tables recomputed.

    published      what was printed, and what counts as the same
    protocol       how the numbers come about: models, draws, answers
    cells          a cell: ours, printed, the same or not, and why
    tables         the tables, from a study of one dataset
    reproduction   all that was asked for, dataset by dataset
    report         the result as text, Markdown, CSV and JSON
    progress       a bar with the time left

``voicecf reproduce`` is the way in; `voicecf.paper.reproduction.reproduce` is it for a program.
"""
