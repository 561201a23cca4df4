"""What takes more than one part of a lab to see."""
