"""Answers as sentences, tables and JSON, in few digits."""
