"""The figures of a run, a file for each kind. Pure: tables in, figures out."""
