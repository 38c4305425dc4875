"""Tables and pipelines: the columns of the user, and the coordinates of the model."""
