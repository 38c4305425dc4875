"""What is printed: sentences, short numbers, JSON."""
