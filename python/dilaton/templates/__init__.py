"""Templates: labs with their files that others start from, what may be chosen of each, and where they are kept."""
