"""Packets: from the bytes of a capture to a table with a row for each packet, and from that to flows."""
