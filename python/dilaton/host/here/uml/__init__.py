"""User-Mode Linux: the kernels that guests run, and what a clock has to know about one."""
