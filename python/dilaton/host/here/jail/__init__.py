"""The jail of a guest: what it sees of this machine, how much of it it may take, and what ends all that is in it."""
