"""`python -m dilaton`."""

import sys

INTERRUPTED = 130

try:
    from dilaton.cli.main import main

    main()
except KeyboardInterrupt:  # during the imports too
    sys.exit(INTERRUPTED)
