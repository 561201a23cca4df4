"""What the server remembers: tables, how they are changed, and how older ones become today's."""
