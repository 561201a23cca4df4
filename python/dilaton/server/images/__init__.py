"""Images of a server: which there are, and how they come from registries."""
