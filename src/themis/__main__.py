"""`themis` and `python -m themis`: starts the command line, and may be interrupted meanwhile."""

import atexit
import gc
import sys


def main() -> None:
    """Import and run the command line."""
    atexit.register(gc.freeze)  # to look for garbage at the end takes a tenth of a second
    gc.disable()  # what is imported stays; on again before a subject is run
    try:
        from themis.cli import main as run
    except KeyboardInterrupt:  # nothing was begun
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
