"""Memory that guests share with this machine: clock pages and wires, laid out by one definition each."""
