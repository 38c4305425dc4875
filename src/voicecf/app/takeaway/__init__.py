"""The page “Take away”: answers as files, and as the Python that gives them again.

code     the script of an answer
report   an answer as one HTML file
tables   tables as CSV, Excel and Parquet, in which nothing is run
"""
