"""Labs of people, whose text is kept in versions and read only in workers."""
