"""Generators: networks made from a few parameters, one a file. Each is a pure function of them and the seed."""
