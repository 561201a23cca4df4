"""Verbs that speak to a run that goes on."""
