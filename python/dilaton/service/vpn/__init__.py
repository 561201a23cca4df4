"""A machine outside in the network of a run: the answering side of its WireGuard, and what may pass."""
