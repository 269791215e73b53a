"""`themis` and `python -m themis`: starts the command line, and may be interrupted meanwhile."""

import sys


def main() -> None:
    """Import and run the command line."""
    try:
        from themis.cli import main as run
    except KeyboardInterrupt:  # nothing was begun
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
