"""`python -m sharnir` is the command `sharnir`."""

import sys

from sharnir.cli.arguments import main

if __name__ == "__main__":
    sys.exit(main())
