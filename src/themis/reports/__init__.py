"""Reports: a saved result as documents that people read, sign and file. Nothing is run."""
