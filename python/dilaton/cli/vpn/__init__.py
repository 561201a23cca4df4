"""A machine of somebody's in the network of a lab, by its own WireGuard."""
