"""Verbs that look at labs: write, check, draw and validate them."""
