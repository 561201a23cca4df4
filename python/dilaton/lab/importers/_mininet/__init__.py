"""What a topology file of Mininet is run with: `describe.py` runs it, on the package `mininet` beside it."""
