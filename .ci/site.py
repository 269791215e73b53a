"""Hooks of MkDocs: the search also works where the site is opened as files, without a server.

Browsers start no workers there. So each page gets a stand-in that runs the search in a hidden
frame, and the index lies beside the JSON as a script too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORKER = """<script>
if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(url) {
    super()
    const frame = document.createElement("iframe")
    frame.hidden = true
    document.body.append(frame)
    this.inner = frame.contentWindow
    this.inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
    const script = this.inner.document.createElement("script")
    script.src = url
    this.ready = new Promise(resolve => script.onload = resolve)
    this.inner.document.body.append(script)
  }
  postMessage(data) {
    this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
  }
}
</script>"""


def on_post_page(output: str, **_: Any) -> str:
    """The page with the stand-in for workers."""
    return output.replace("</head>", f"{WORKER}</head>", 1)


def on_post_build(config: Any) -> None:
    """Write the index as a script."""
    folder = Path(config["site_dir"]) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
