"""From older tables to today's, a file a step; none of them imports what may change later."""
