"""Speaking to a run that goes on, from other processes: requests, sessions, and what is told of it."""
