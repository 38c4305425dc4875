"""What a visitor works on, kept on this computer.

choices   all that was chosen, as one plain value that is written as JSON
project   a table, its choices, and results that are computed once
store     the folder of all projects; one file to take a project elsewhere
"""

from voicecf.app.project.choices import ProjectChoices
from voicecf.app.project.project import Project
from voicecf.app.project.store import Store, StoreError

__all__ = ["Project", "ProjectChoices", "Store", "StoreError"]
