"""``python -m unbounded``: the command ``unbounded``."""

import sys

from unbounded.cli import main

if __name__ == "__main__":
    sys.exit(main())
