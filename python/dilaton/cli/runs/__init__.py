"""Verbs that run labs and commands, once or many times."""
