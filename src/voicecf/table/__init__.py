"""Tables and pipelines: the user's columns, and the model's coordinates."""
