"""What is known of the time for which programs waited for the CPU, and what that is to a run."""
