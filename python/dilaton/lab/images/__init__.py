"""Images as labs have them: by name, or by recipe."""
