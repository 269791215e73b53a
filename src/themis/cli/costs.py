"""What a command will cost, as a sentence that is said before it begins."""

from __future__ import annotations

from themis.cli.printing import say
from themis.events import FACTOR, Event, Forecast
from themis.inputs.numbers import two_digits
from themis.show.words.values import about_duration, at_cost, count


def forecast_sentence(forecast: Forecast) -> str:
    """All executions, with those that are repeated, in how many calls, and how long."""
    parts = [about(forecast.executions, "execution")]
    if forecast.calls < forecast.executions:
        parts.append(f"in {about(forecast.calls, 'call')}")
    if forecast.tokens:
        guessed = " (estimated)" if forecast.guessed else ""
        parts.append(f"with {about(forecast.tokens, 'token')}{guessed}{at_cost(forecast.spend)}")
    give_or_take = f"give or take a factor of {FACTOR}"
    if forecast.among > 4:  # the cost of a search among more is not foreseen well
        give_or_take = (
            f"a search among {forecast.among} characteristics may take many times as many"
        )
    time = "" if forecast.seconds is None else f"; {about_duration(forecast.seconds)}"
    return f"all together {' '.join(parts)} ({give_or_take}){time}"


def say_forecast(event: Event) -> None:
    """Say what a whole audit will cost, once that is known."""
    if isinstance(event, Forecast):
        searched = ", a search" if event.among > 1 else ""
        sets = count(len(event.parts), "set")
        say(f"{sets}{searched} and noise: {forecast_sentence(event)}")


def about(number: int, noun: str) -> str:
    """So many, as far as is known: "about 31,000 executions"."""
    return f"about {count(int(two_digits(number)), noun)}"
