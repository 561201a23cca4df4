"""The network of a plan: addresses, paths and routes, and who talks to whom over which of them."""
