"""The command line: the app, and the entry point of the command `themis`."""

from themis.cli.commands import app, main

__all__ = ["app", "main"]
