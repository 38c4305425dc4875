"""Search for answers: least cost, shortest prefix, fewest changes, alternatives, trade-off."""
