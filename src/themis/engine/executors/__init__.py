"""Executors: where else than in this process a subject may run, with the same answers."""
