"""Guests as processes of this machine: jail, kernel, core, disks, channel; one, and all of a run as one."""
