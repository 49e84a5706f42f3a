"""The states of an actor's cards as time spans on the run's clock.

Adjacent spans of the same state are merged before they are reported.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from .messages import Activity, CardState, Span

Send = Callable[[Any], None]

_JOIN = 100_000
_INTERVAL = 100_000_000


class ActivityLog:
    def __init__(self, epoch_monotonic_ns: int) -> None:
        self._epoch = epoch_monotonic_ns
        self._spans: list[Span] = []
        self._last_report = 0

    def now(self) -> int:
        """Nanoseconds since the start of the run."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - self._epoch

    @contextlib.contextmanager
    def span(self, state: CardState) -> Iterator[None]:
        begin = self.now()
        try:
            yield
        finally:
            self.add(state, begin)

    def add(self, state: CardState, begin: int) -> None:
        end = self.now()
        last = self._spans[-1] if self._spans else None
        if last is not None and last.state == state and begin - last.end <= _JOIN:
            last.end = end
        else:
            self._spans.append(Span(state, begin, end))

    def report(self, send: Send) -> None:
        """Sends the collected spans if the last report is old enough."""
        if self._spans and self.now() - self._last_report >= _INTERVAL:
            self.flush(send)

    def flush(self, send: Send) -> None:
        self._last_report = self.now()
        if self._spans:
            send(Activity(self._spans))
            self._spans = []
