"""Compiles a lab to a plan: everything that a run will do, decided beforehand. Pure functions."""
