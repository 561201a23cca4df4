"""The course of a run: what happens in it beside processes, and what everything in it waits for."""
