"""JSON schemas of what others write and read, made from the models that read and write it here."""
