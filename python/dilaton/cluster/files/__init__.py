"""Files of a run on its machines, and what of them stays there."""
