"""The app: ``voicecf app``, for analysts who would rather click than code.

    reading     bytes -> a table, or a sentence that says what is wrong with the file
    examples    tables to begin with
    columns     what each column is good for: a number, a category, or set aside
    preparing   missing values, and the scikit-learn pipeline
    segments    how many segments, fitting, profiles in the user's units, names
    question    what is asked about a row: one value, from which answer and code are made
    answers     the answer, in words and figures
    everyone    all rows, part by part
    pairwise    what CFCLUST misses
    charts      pictures, by altair
    code        the Python that gives the same answer
    report      the answer as one HTML file
    launch      starts the server, on this machine only
    main        the pages' frame; `pages` are thin

Only `main`, `session`, `launch` and `pages` know Streamlit. All else is plain and tested by itself.
"""
