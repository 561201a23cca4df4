"""What a lab breaks on purpose, and mends again."""
