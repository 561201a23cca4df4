"""Has 40 MB that the server does not need."""

import time

cache = bytearray(40_000_000)
while True:
    time.sleep(60)
