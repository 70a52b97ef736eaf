"""The command line: ``python -m clearway run quickstart``."""

import signal
import sys

from ._clearway import main as _main
from ._sweep import PROGRAM


def main() -> int:
    """Does what the arguments of the process ask for, and returns the exit code."""
    # The command line catches Ctrl-C by itself, and keeps what a run has; Python's handler would add a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _main(PROGRAM, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
