"""The part of Mininet's interface that describes networks. What runs them (net, cli, clean) is not there."""
