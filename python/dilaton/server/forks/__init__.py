"""Workers that answer soon: forked from a process that has imported everything, or begun before they are asked."""
