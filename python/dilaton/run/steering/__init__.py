"""What a run does when somebody asks: its clock, its links, sessions in its nodes."""
