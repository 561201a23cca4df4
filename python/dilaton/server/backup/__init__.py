"""`dilaton serve --backup` and `--restore`: all that a server knows, in one file, whichever database it has.

A backup is an archive (tar). First come the tables, as they were at one moment, a line of JSON for each row; then the
files of runs that were over then, which change no more, so that they fit the tables although they are copied later,
while the server goes on. A run that was still going on is in the tables alone, and is written down as failed when they
are put back, since nobody knows what became of it. Then come saved labs, each kept from changing while it is copied,
and the store of images, from which nothing is freed meanwhile.

The file is there whole or not at all, and so is what was put back: tables are written in one transaction, at whose end
the directories of files, complete by then, are given their names. Images come into the store of the account before,
where each is whole or has no name. Rows need no knowledge of SQLite or PostgreSQL, so a server also moves from one to
the other by this.
"""
