"""Answers: cheapest points, shortest prefixes, fewest changes, alternatives."""
