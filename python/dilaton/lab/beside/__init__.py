"""What a lab takes from files beside it, which are read with it: their mistakes are told with its lines."""
