"""Labs that are saved with what their nodes have, and gone on from; and runs that stand where another one was."""
