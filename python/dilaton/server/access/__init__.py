"""Who somebody is, what they may do, and how that is decided."""
