"""The runtime of a worker: registers with the orchestrator, builds the assigned role, and runs it.

There are two threads. The main thread runs the role. The I/O thread owns the socket: it sends
heartbeats on time, regardless of how long a step takes, and detects a silent orchestrator.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from . import messages as m
from .errors import NotFinite, OrchestratorGone, is_permanent, one_line
from .process import ProgressMeter, host_name, resident_memory
from .transport import Connection, wake_pair
from .wire import pack

log = logging.getLogger("temper")

_HELLO_INTERVAL = 1.0
_REGISTRATION = 10.0
IDLE = 0.1  # maximum seconds between two calls of work()
_ABANDON = 5.0  # seconds that a busy role gets after the orchestrator was lost
_FLUSH = 2.0


Send = Callable[[Any], None]


class Actor(Protocol):
    """The interface of an actor. All calls are on the main thread."""

    def start(self) -> None: ...

    def on_message(self, message: Any) -> None: ...

    def work(self) -> bool:
        """Does a bounded piece of work. Returns True if there is more."""

    def stop(self) -> None: ...


class _Inbox:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._messages: collections.deque[Any] = collections.deque()
        self._closed: str | None = None

    def push(self, message: Any) -> None:
        with self._changed:
            self._messages.append(message)
            self._changed.notify()

    def close(self, why: str) -> None:
        with self._changed:
            self._closed = self._closed or why
            self._changed.notify()

    def take(self, timeout: float) -> list[Any]:
        """All received messages; waits if there are none. Raises OrchestratorLost once closed."""
        with self._changed:
            if timeout > 0 and not self._messages and self._closed is None:
                self._changed.wait(timeout)
            taken = list(self._messages)
            self._messages.clear()
            if not taken and self._closed is not None:
                raise OrchestratorLost(self._closed)
            return taken


class _Outbox:
    def __init__(self) -> None:
        self.fd = wake_pair()
        self._queue: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self._finished = False

    def send(self, message: Any) -> None:
        """Queues the message. Messages arrive in the order in which they were queued."""
        self._queue.append((message.TAG, message.VERSION, pack(message.pack())))
        os.eventfd_write(self.fd, 1)

    def finish(self) -> None:
        self._finished = True
        os.eventfd_write(self.fd, 1)

    def move_to(self, connection: Connection) -> bool:
        """Moves all messages to the connection. Returns True if no more will come."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            pass
        finished = self._finished  # read first: messages from before finish() are then queued
        while self._queue:
            connection.queue_packed(*self._queue.popleft())
        return finished


@dataclasses.dataclass(slots=True)
class Applicant:
    """The identity of a worker that attaches to a run."""

    attached: bool = False
    was: str = ""  #: Its previous slot.
    run: str = ""
    incarnation: int = 0  #: Incarnation of its last orchestrator.


class RunEnded(OrchestratorGone):
    """The run ended before this worker was admitted."""


class OrchestratorLost(OrchestratorGone):
    """The orchestrator was lost after it admitted this worker; another one may follow."""


def register(
    connection: Connection,
    name: str,
    secret: str,
    applicant: Applicant | None = None,
    patience: float = _REGISTRATION,
    still_there: Callable[[], bool] = lambda: True,
) -> m.Welcome | None:
    """Registers with the orchestrator.

    Returns:
        The welcome message; None if `still_there()` became false.

    Raises:
        OrchestratorGone: The orchestrator refused the worker or did not answer in time.
    """
    who = applicant or Applicant()
    hello = m.Hello(
        name=name,
        secret=secret,
        pid=os.getpid(),
        host=host_name(),
        attached=who.attached,
        was=who.was,
        run=who.run,
        incarnation=who.incarnation,
    )
    deadline = time.monotonic() + patience
    next_hello = 0.0
    why = "check that the orchestrator is running and that the key was not revoked"
    while (now := time.monotonic()) < deadline:
        if now >= next_hello:
            if not still_there():
                return None
            connection.queue(hello)
            next_hello = now + _HELLO_INTERVAL
        connection.flush()
        connection.wait(min(deadline, next_hello) - now)
        while (message := connection.receive()) is not None:
            if isinstance(message, m.Welcome):
                return message
            if isinstance(message, m.Stop):
                raise RunEnded("the run has ended")
            if isinstance(message, m.Reject) and not message.again:
                raise OrchestratorGone(f"rejected by the orchestrator: {message.reason}")
            if isinstance(message, m.Reject):
                why = message.reason
    raise OrchestratorGone(f"no actor.welcome from {connection.endpoint} within {patience:.0f} s: {why}")


class _IoThread(threading.Thread):
    def __init__(self, connection: Connection, welcome: m.Welcome, inbox: _Inbox, outbox: _Outbox):
        super().__init__(name="temper-io", daemon=True)
        self._connection = connection
        self._heartbeat = welcome.heartbeat / 1e9
        self._timeout = welcome.heartbeat_timeout / 1e9
        self._epoch = welcome.epoch_monotonic_ns
        self._inbox = inbox
        self._outbox = outbox
        self.loading = True  #: The role is not ready for work yet.
        self._progress: ProgressMeter | None = None
        connection.watch(outbox.fd)

    def run(self) -> None:
        try:
            self._exchange()
            self._flush()
        except OrchestratorGone as gone:
            log.error("connection lost: %s", gone)
            self._inbox.close(str(gone))
            self._await_main_thread()
        except Exception:
            log.exception("the socket failed")
            self._inbox.close("the socket failed")
            self._await_main_thread()

    def _exchange(self) -> None:
        self._progress = ProgressMeter()  # on this thread
        connection = self._connection
        heard = time.monotonic()
        next_heartbeat = heard
        last_beat: tuple[int, int] | None = None  # when the orchestrator sent it, when it arrived
        while True:
            while (message := connection.receive()) is not None:
                heard = time.monotonic()
                if isinstance(message, m.Heartbeat):
                    last_beat = (message.sent, time.monotonic_ns())
                if isinstance(message, m.Reject):
                    raise OrchestratorGone(f"released by the orchestrator: {message.reason}")
                if not isinstance(message, (m.Heartbeat, m.Welcome)):
                    self._inbox.push(message)
            if self._outbox.move_to(connection):
                return
            now = time.monotonic()
            if now - heard >= self._timeout:
                raise OrchestratorGone(f"the orchestrator was silent for {self._timeout:g} s")
            if now >= next_heartbeat:
                connection.queue(self._beat(last_beat))
                next_heartbeat = now + self._heartbeat
            connection.flush()
            connection.wait(min(next_heartbeat, heard + self._timeout) - now)

    def _beat(self, last: tuple[int, int] | None) -> m.Heartbeat:
        """A heartbeat, which also answers the orchestrator's last one."""
        now = time.monotonic_ns()
        answers = None if last is None else m.HeartbeatAnswer(last[0], now - last[1])
        loading = self.loading and self._progress is not None and self._progress.has_progressed()
        return m.Heartbeat(resident_memory(), now - self._epoch, answers, loading)

    def _flush(self) -> None:
        deadline = time.monotonic() + _FLUSH
        while not self._connection.flush() and (left := deadline - time.monotonic()) > 0:
            self._connection.wait(left)
            while self._connection.receive() is not None:
                pass
        self._connection.close(max(0.0, deadline - time.monotonic()))

    def _await_main_thread(self) -> None:
        """Waits until the main thread has noticed the loss; ends the process if it takes too long."""
        deadline = time.monotonic() + _ABANDON
        while not self._outbox.move_to(self._connection):
            left = deadline - time.monotonic()
            if left <= 0:
                print(
                    f"temper.worker: the role was still busy {_ABANDON:g} s after the orchestrator was "
                    "lost; ending the process",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(1)
            time.sleep(min(left, 0.05))


def failure_of(error: BaseException, built: bool) -> m.Failed:
    """The report of an error that ends a role. `built`: the role was built, so another start may help."""
    return m.Failed(one_line(error), not built and is_permanent(error), isinstance(error, NotFinite))


class Session:
    """The connection of a registered worker: `with Session(...) as session`.

    An exception in the block is reported to the orchestrator as actor.failed; the end of the block
    sends all queued messages.
    """

    def __init__(self, connection: Connection, welcome: m.Welcome) -> None:
        self._inbox, self._outbox = _Inbox(), _Outbox()
        self._io = _IoThread(connection, welcome, self._inbox, self._outbox)
        self._built = False

    def __enter__(self) -> Session:
        self._io.start()
        return self

    def send(self, message: Any) -> None:
        """Queues the message. Messages arrive in the order in which they were queued."""
        self._outbox.send(message)

    def built(self) -> None:
        """Marks the role as built: later errors may not recur after a restart."""
        self._built = True

    def started(self) -> None:
        """Marks the role as ready: heartbeats no longer report that it is loading."""
        self._io.loading = False

    def take(self, timeout: float) -> list[Any]:
        """Takes all received messages; waits up to `timeout` seconds if there are none.

        Raises OrchestratorLost once the orchestrator is lost.
        """
        return self._inbox.take(timeout)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, GeneratorExit):
            if not isinstance(error, OrchestratorGone):
                traceback.print_exception(error)
            self.send(failure_of(error, self._built))
        sys.stdout.flush()
        sys.stderr.flush()
        self._outbox.finish()
        self._io.join()


def run(
    connection: Connection,
    welcome: m.Welcome,
    make: Callable[[m.Welcome, Send], Actor],
    last: Any = None,
) -> None:
    """Builds the role and serves until actor.stop, then sends `last`. Errors of the role propagate.

    Raises:
        OrchestratorLost: The orchestrator was lost.
    """
    with Session(connection, welcome) as session:
        actor = make(welcome, session.send)
        session.built()
        session.send(m.Ready())
        actor.start()
        session.started()
        more = True
        while True:
            for message in session.take(0.0 if more else IDLE):
                if isinstance(message, m.Stop):
                    actor.stop()
                    if last is not None:
                        session.send(last)
                    return
                actor.on_message(message)
            more = actor.work()
