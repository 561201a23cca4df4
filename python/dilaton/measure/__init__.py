"""Makes results, checks and figures of a run record. Pure functions."""
