"""Labs that are saved with what their nodes have, and gone on from."""
