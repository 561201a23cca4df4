"""This machine: where guests run as kernels in user space."""
