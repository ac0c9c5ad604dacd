"""Plays the workload: every mode asked the same request, one after another, on the same server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from stepcache._types import ModelCall, Reply
from stepcache.bench._items import Item
from stepcache.bench._log import Exchange, Log, LogError
from stepcache.bench._modes import MODES, Answer, Mode, Player, open_player
from stepcache.bench._recorder import Recorder, Shelf

__all__ = ["Generate", "order_of_modes", "play", "steps"]

Generate = Callable[[Mode], Callable[[ModelCall], Reply]]
"""The model as one mode may ask it (with or without prefill, constrained decoding)."""


@dataclass(slots=True)
class _Seat:
    """One mode at the table of one seed."""

    mode: Mode
    recorder: Recorder
    player: Player


def order_of_modes(modes: Sequence[str], seed_index: int) -> list[str]:
    """The modes, rotated by one place for each seed: nobody always goes first."""
    at = seed_index % len(modes)
    return [*modes[at:], *modes[:at]]


def steps(items: Mapping[int, Sequence[Item]], modes: Sequence[str]) -> int:
    """Exchanges of a whole run, warm-up included."""
    return sum(len(one) for one in items.values()) * len(modes)


def play(
    items: Mapping[int, Sequence[Item]],
    modes: Sequence[str],
    generate: Generate,
    log: Log,
    *,
    salt: str = "",
    share: bool = False,
    side_by_side: int = 1,
    told: Callable[[Exchange, Item, bool], object] | None = None,
) -> list[Exchange]:
    """Play every seed's items through every mode.

    Each seed gives each mode a cache of its own, empty at first. The warm-up's model calls are made
    once and shared, so that all modes are warmed with the same answers. Exchanges that the log
    holds are played again without the model, which brings the caches back to where they were.

    Args:
        items: Items in order, by seed.
        modes: Names of modes.
        generate: Gives the function that asks the model for a mode.
        salt: What else decides an answer: the model's name and its sampling parameters.
        share: Whether a call that several modes make for one item is made once, its measured
            seconds being counted for each of them.
        side_by_side: Seeds played at the same time.
        told: Called after each exchange with it, its item, and whether the log held it.
    """
    telling = threading.Lock()
    stopped = threading.Event()

    def play_seed(index: int, seed: int) -> list[Exchange]:
        exchanges = []
        with ExitStack() as stack:
            shelf = Shelf()
            seats = []
            for name in order_of_modes(modes, index):
                mode = MODES[name]
                recorder = Recorder(
                    generate(mode),
                    salt=f"{salt} {mode.prefill} {mode.constrain}",
                    shelf=shelf,
                    share=share,
                )
                seats.append(
                    _Seat(mode, recorder, stack.enter_context(open_player(mode, recorder)))
                )
            for exchange, item, known in _session(items[seed], seats, log, shelf):
                exchanges.append(exchange)
                if stopped.is_set():
                    break
                if told is not None:
                    with telling:
                        told(exchange, item, known)
        return exchanges

    if side_by_side == 1:
        played = [play_seed(index, seed) for index, seed in enumerate(items)]
    else:
        with ThreadPoolExecutor(max_workers=side_by_side, thread_name_prefix="seed") as pool:
            try:
                played = list(pool.map(play_seed, range(len(items)), items))
            except BaseException:
                stopped.set()  # the other seeds end with the exchange they are at
                raise
    return [exchange for one in played for exchange in one]


def _session(
    items: Sequence[Item], seats: Sequence[_Seat], log: Log, shelf: Shelf
) -> Iterator[tuple[Exchange, Item, bool]]:
    for item in items:
        shelf.next_item()
        for seat in seats:
            seat.recorder.warming = item.split == "warm-up"
            known = log.done.get((seat.mode.name, item.id))
            if known is not None:
                _again(seat, item, known, shelf)
                yield known, item, True
                continue
            exchange = _ask(seat, item)
            log.add(exchange)
            yield exchange, item, False


def _ask(seat: _Seat, item: Item) -> Exchange:
    seat.recorder.begin()
    answer, error = Answer(text="", route="error"), ""
    start = time.perf_counter()
    try:
        answer = seat.player(item.prompt)
    except Exception as raised:  # noqa: BLE001 - goes into the record, and the run goes on
        error = f"{type(raised).__name__}: {raised}"[:500]
    # Microseconds, so that a record gives back the very figures it was written with.
    seconds = round(time.perf_counter() - start + seat.recorder.charged, 6)
    return Exchange(
        mode=seat.mode.name,
        item=item.id,
        text=answer.text,
        route=answer.route,
        seconds=seconds,
        reason=answer.reason,
        trace=answer.trace,
        error=error,
        calls=tuple(seat.recorder.calls),
    )


def _again(seat: _Seat, item: Item, known: Exchange, shelf: Shelf) -> None:
    """Bring the mode's cache to where the recorded exchange left it."""
    if known.error:
        return
    if seat.recorder.warming:
        for call in known.calls:
            shelf.put(call.digest, call.reply(), warming=True)
    seat.recorder.replay(known.calls)
    answer = seat.player(item.prompt)
    if answer.text != known.text or not seat.recorder.finished:
        raise LogError(
            f"{seat.mode.name} now answers {item.id} otherwise than the log says: the code or an "
            "installed package has changed, so start again in another folder (--out)"
        )
