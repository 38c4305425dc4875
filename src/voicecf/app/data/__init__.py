"""The page “Data”: from the bytes of a file to rows that can be clustered.

begin           ways to begin: a file, the clipboard, an example, earlier work
reading         bytes -> a table, or a sentence that says what is wrong with the file
examples        tables that come along
understanding   what was understood of each column, beside what stood in the file
columns         what each column is used as, and whether anybody can change it
preparing       missing values, dates as durations, the scikit-learn pipeline
"""
