"""voicecf: what would have to change for this row to be in that segment?"""

__version__ = "0.1.0"
