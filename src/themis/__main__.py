"""`themis` and `python -m themis`: starts the command line, and may be interrupted meanwhile."""

import atexit
import gc
import os
import sys

# How long idle threads of numpy's algebra library look out for work before they sleep, as a power
# of two of processor cycles: with its own 26 they burn a seventh of the time of a short command.
WATCHFUL = "20"


def main() -> None:
    """Import and run the command line."""
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", WATCHFUL)
    atexit.register(gc.freeze)  # to look for garbage at the end takes a tenth of a second
    gc.disable()  # what is imported stays; on again before a subject is run
    try:
        from themis.cli import main as run
    except KeyboardInterrupt:  # nothing was begun
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
