"""Labs and runs of a server elsewhere, asked by its API: what the command line does with `--server`, and Python.

Nothing but Python's own library is needed, and websockets for programs in nodes; nothing of the server is imported. Two
things decide how it is written:

- **A connection may be lost at any moment**, and a server be killed and started anew while runs go on. So a run is
  asked for by a key of its own, and asked for again where the answer did not come; and what happens is told behind the
  last number that was heard.
- **A server is not trusted with this machine.** What it calls a file is a name below a directory that is new; what it
  says is shown as text; and a token goes to no other host than it was meant for, and not over a network in plain text.
"""
