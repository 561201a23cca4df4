"""Verbs about this machine and its kernels."""
