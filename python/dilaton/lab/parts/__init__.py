"""The parts of a lab, one file each: what users write of them, checked and normalised."""
