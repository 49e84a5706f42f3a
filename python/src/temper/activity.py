"""What an actor reports: states of its cards as time spans on the run's clock, and its tensors.

Adjacent spans of the same state are merged before they are reported.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .messages import Activity, CardState, Span, TensorUse, Usage

Send = Callable[[Any], None]

_JOIN = 100_000
_INTERVAL = 100_000_000


class ActivityLog:
    def __init__(self, epoch_monotonic_ns: int) -> None:
        self._epoch = epoch_monotonic_ns
        self._spans: list[Span] = []
        self._last_report = 0
        self._tensors = TensorUse()
        self._counted = False
        self._counting = threading.Lock()

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

    def count_tensors(self, stored: int = 0, fetched: int = 0, fetching: int = 0) -> None:
        """Adds bytes that were written or read, and nanoseconds in which they were read. Any thread."""
        with self._counting:
            use = self._tensors
            self._tensors = TensorUse(
                stored=use.stored + stored,
                fetched=use.fetched + fetched,
                fetching=use.fetching + fetching,
            )
            self._counted = True

    def report(self, send: Send) -> None:
        """Sends the collected spans if the last report is old enough."""
        if self._spans and self.now() - self._last_report >= _INTERVAL:
            self.flush(send)

    def flush(self, send: Send) -> None:
        self._last_report = self.now()
        with self._counting:
            usage = Usage(tensors=self._tensors) if self._counted else None
            self._counted = False
        if self._spans or usage:
            send(Activity(self._spans, usage))
            self._spans = []
