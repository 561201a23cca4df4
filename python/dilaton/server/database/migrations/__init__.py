"""The steps from older tables to today's, a file each; none of them imports what may change later."""
