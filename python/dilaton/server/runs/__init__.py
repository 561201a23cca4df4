"""Runs of people: asked for, kept in the database, executed by processes of their own that outlive the server."""
