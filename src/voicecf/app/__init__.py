"""The app: ``voicecf app``, for analysts who would rather click than code.

A folder a page; in each, `page` draws with Streamlit, all else is plain and tested by itself.

    data        bytes -> a table, what its columns are good for, the rows to be clustered
    segments    how many segments, fitting, profiles in the user's units, names
    row         what is asked about a row, the answer in words and pictures
    campaign    all rows: who can be moved, by what, for how much
    takeaway    answers as files, and as the Python that gives them again
    method      what pairwise answers miss; the paper's tables, recomputed

    project     what a visitor works on: a table, choices, results; kept on this computer
    session     between Streamlit and a project: the address, controls, pages
    blocks, charts, style, words   pieces of HTML, of pictures, colours, wording
    main        navigation; `launch` starts the server, on this machine only
"""
