"""Files of other programs as labs of their own, which need these files no more."""
