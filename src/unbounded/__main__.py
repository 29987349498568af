"""``python -m unbounded``: the command ``unbounded``."""

import sys

from unbounded.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
