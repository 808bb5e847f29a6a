"""`python -m trainwreck train.py --its --own arguments`."""

import sys

from trainwreck.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
