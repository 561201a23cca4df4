"""What this machine has and lacks, and how fast it is."""
