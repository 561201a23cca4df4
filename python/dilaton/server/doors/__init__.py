"""Doors: pages of nodes, shown in a person's browser.

**Problem.** What a node serves is somebody's program, and a browser does for a page whatever its origin may do. Served
below the server's own name, a node's page would be one of the server's: it could ask the API with the person's cookie,
read the answers, and change what they may.

**Rule.** Each door, of one person to one port of one node, is a *host* of its own, `LABEL.DOMAIN`, where the label is
random. Nothing but the node answers there, and the server's cookie, which is of the server's host alone, is not sent
there. The other way about the API is not served under any name but its own, and hears no page of another origin.

A host's name is no secret: it is sent in plain text while a connection is made, and in pages. So who comes shows a
cookie of that host, which they get for a ticket that is in the link, good once and for a minute. A door is open as long
as the person may have it, which is looked up with every request, for half a day at most, and in this process alone.
"""
