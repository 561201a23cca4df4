"""The links of a plan: what a direction does to packets, from virtual 0 on and after each change."""
