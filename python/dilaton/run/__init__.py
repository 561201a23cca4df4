"""A run's life: prepare, boot, start, stop, collect; and the record that it leaves."""
