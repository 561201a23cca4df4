"""The files of a run: its directory, what its programs have written, logs of its events and clock."""
