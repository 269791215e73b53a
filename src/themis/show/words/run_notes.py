"""Notes on how a run went, its calls, caches and executors, in plain words, by their codes."""

from __future__ import annotations

from collections.abc import Callable

from themis.show.words.amounts import Values
from themis.show.words.values import count, one_line


def _calls_take_time(values: Values) -> str:
    changes = []
    if values.get("cost") != "calls":  # as it is set, or by default
        changes.append('with cost = "calls" in [subject]')
    if "max_executions" in values:
        changes.append("without max_executions")
    return (
        f"a call of {values['many']:,} inputs took little longer than one of {values['few']:,}: "
        f"{' and '.join(changes)} fewer, larger calls are made"
    )


def _slow_start(values: Values) -> str:
    share = values["share"]
    times = f"{1 / (1 - share):.0f} times as fast" if share < 0.99 else "at once"
    return (
        f"starting the program took at least {share:.0%} of the time: as a worker, which "
        f'is started once (kind = "worker"), the subject would answer {times}'
    )


def _cache_in_use(values: Values) -> str:
    who = f"process {values['process']}" if "process" in values else "another process"
    who = "this process itself" if values.get("own") else who
    return (
        f"the cache {values['path']} is in use by {who}: this run reads it, but "
        "stores nothing until that one has ended"
    )


RUN_WORDS: dict[str, str | Callable[[Values], str]] = {
    "slow-start": _slow_start,
    "inputs-unanswered": lambda values: (
        f"{count(values['inputs'], 'input')} asked together got no answer "
        f"({one_line(values['reply'])}), and too little time was left to find out which of them is "
        "to blame, if any: they count as not run"
    ),
    "executions-take-time": lambda values: (
        f"each input took about {1e3 * values['seconds']:,.0f} ms, however many were in a call: "
        'with cost = "executions" in [subject] fewer inputs are run'
    ),
    "calls-take-time": _calls_take_time,
    "executor-not-used": "{executor} is not used: programs have processes of their own (jobs), "
    "and a web service would get the requests of many machines instead of those it allows for one",
    "executor-differs": "{executor} was not used: some inputs got different answers there, so that "
    "all were run here; answers may depend on the state of a process, or on chance",
    "cache-not-used": "the cache is not used: code within this process can change unseen, so its "
    "decisions are remembered for one run only",
    "cache-in-use": _cache_in_use,
    "cache-set-aside": "the cache {path} was written by an earlier Themis, without checksums: it "
    "was renamed to {aside}, and a new one begins",
    "cache-damaged": "the cache {path} is damaged: the checksums of {decisions:,} decisions in it "
    "do not match, so those were not used but run again",
}
