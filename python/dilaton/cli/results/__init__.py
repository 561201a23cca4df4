"""Verbs that look at what runs have left."""
