"""Endpoints of labs, and of what is kept beside them."""
