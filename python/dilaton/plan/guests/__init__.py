"""The kernels of a plan: which guest holds which node, with which devices, memory, CPU and clock."""
