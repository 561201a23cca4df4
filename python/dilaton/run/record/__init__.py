"""The record of a run, what goes into it, and its words."""
