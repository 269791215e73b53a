"""Which result is this? A hash of all that it says, whatever file it stands in."""

from __future__ import annotations

import hashlib
import json

from themis.results.model import Result

# The same in plain Python, for whoever has the file and not this program.
RECIPE = (
    'python -c \'import hashlib, json, sys; r = json.load(open(sys.argv[1])); del r["themis"]; '
    'print(hashlib.sha256(json.dumps(r, sort_keys=True, separators=(",", ":")).encode())'
    ".hexdigest())' result.json"
)


def digest(result: Result) -> str:
    """The SHA-256 of a result's JSON with sorted keys; without the version that read it."""
    data = result.to_dict()
    del data["themis"]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
