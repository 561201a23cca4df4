"""Random labs of all that the language has, and what is asked of their runs by hand at random moments."""
