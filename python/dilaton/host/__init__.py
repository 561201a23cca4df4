"""Run a plan's guests on this machine: jail, kernel, clock page, channel."""
