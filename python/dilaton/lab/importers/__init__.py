"""Readers of files that describe networks, one a format."""
