"""What a process did in the course of time, one operation after the other, and what of that a part of a run has."""
