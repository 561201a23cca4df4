"""Which machine holds which guest."""
