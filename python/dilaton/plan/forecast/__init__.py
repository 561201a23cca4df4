"""What can be told of a run before it: what would go wrong, what it costs, when it ends."""
