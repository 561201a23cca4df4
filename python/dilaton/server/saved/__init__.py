"""Saved labs of a server, and runs that stand where another one was: by workers, since they read what guests wrote."""
