"""Commands of `themis` that answer a page, each a process that is ended where nobody waits."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

from themis.errors import RequestError
from themis.web.site import Site

MOST_SECONDS = 300.0


async def ask_command(site: Site, *command: str) -> tuple[str, list[str]]:
    """What a command writes to stdout, and the lines that it says beside, in the project's folder.

    Raises RequestError where it takes too long.
    """
    trust = ["--trust-pickle"] if site.trust_pickle else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "themis", *command, *trust),
        cwd=site.project,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    try:
        out, said = await asyncio.wait_for(process.communicate(), MOST_SECONDS)
    except TimeoutError:
        problem, remedy = f"took more than {MOST_SECONDS:.0f} seconds", "run it in a terminal"
        raise RequestError.one("too-slow", f"themis {command[0]}", problem, remedy) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return out.decode(errors="replace"), said.decode(errors="replace").strip().splitlines()
