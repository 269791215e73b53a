"""Commands of `themis` that answer a page, each a process that ends with the page's server."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

from themis.errors import RequestError
from themis.web.child import Told, command_line
from themis.web.site import Site

MOST_SECONDS = 300.0


async def ask_command(site: Site, *command: str) -> tuple[str, list[str]]:
    """What a command writes to stdout, and its mistakes, in the project's folder.

    Raises RequestError where it takes too long.
    """
    trust = ["--trust-pickle"] if site.trust_pickle else []
    mark = site.mark() if site.file.exists() else ""
    with Told(mark) as told:
        process = await asyncio.create_subprocess_exec(
            *command_line("", *command, *trust),
            cwd=site.project,
            env=told.environment,
            stdin=PIPE,  # closes with this process
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            out = await asyncio.wait_for(process.stdout.read(), MOST_SECONDS)
            await process.wait()
        except TimeoutError:
            problem, remedy = f"took more than {MOST_SECONDS:.0f} seconds", "run it in a terminal"
            raise RequestError.one("too-slow", f"themis {command[0]}", problem, remedy) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return out.decode(errors="replace"), told.mistakes
