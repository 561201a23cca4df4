"""From a run record to results, checks and figures. Pure functions."""
