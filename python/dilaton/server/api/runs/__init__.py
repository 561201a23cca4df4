"""Endpoints of runs: asked for, steered, reached, looked at."""
