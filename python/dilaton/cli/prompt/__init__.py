"""The `lab>` prompt of a lab that stays."""
