"""Time dilation that follows the load: what a run shows in an epoch decides the TDF of the next.

`epoch` has the terms; `lateness` and `pads15` are policies, both pure; `meter` reads epochs off clock pages; `watch`
does what a policy decides, and `ledger` keeps what came of it.
"""
