"""Makes figures, tables as files and one page of a loaded run, and pictures of labs."""
