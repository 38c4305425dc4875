"""The page “Segments”: how many, what sets each apart, and what they are called.

suggesting   how many segments to make
segments     fitted segments
profiles     how segments differ from all rows
naming       names from what sets segments apart
aside        what the columns set aside say about segments
assigned     every row with its segment
"""
