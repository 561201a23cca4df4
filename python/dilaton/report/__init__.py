"""From a loaded run to figures, tables as files, and one page that shows it all; and labs as pictures."""
