"""`python -m dilaton`."""

from dilaton.cli.main import main

main()
