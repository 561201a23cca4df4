"""Programs that somebody outside starts in a guest: their frames, their streams, and the line that carries them."""
