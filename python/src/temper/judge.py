r"""A language model as a judge: `verifier.kind: judge`.

    judge = Judge(JudgeConfig(url="http://127.0.0.1:8080/v1", model="m", pattern=r"(\d+)",
                              prompt="Rate this answer to {prompt} from 0 to 10: {response}", highest=10),
                  concurrency=8, deadline=60)
    rewards = judge.judge(samples)      # a reward or an exception for each

The judge is any server with OpenAI's `/chat/completions`. Equal questions are asked once. A request
that fails for a while (no connection, status 408, 425, 429 or 5xx, no score in the reply) is repeated
until the deadline of the response or its number of attempts is reached.
"""

from __future__ import annotations

import collections
import concurrent.futures
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from . import messages as m
from .errors import BrokenReward, RoleError, one_line
from .fill import fill
from .messages import JudgeConfig
from .rewards import MOST_FAILURES
from .roles import Sample

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LONGEST_REPLY = 16 << 20  # bytes
_TEMPORARY = {408, 425, 429}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class _Temporary(Exception):
    """A failure after which the request may succeed; `after`: seconds that the server asks for."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class Judge:
    """Asks a language model for the reward of each response.

    Args:
        config: The server, the question, and where the score is in the reply.
        concurrency: Requests at the same time.
        deadline: Seconds for one response with all attempts.
        name: Name of the verifier in errors.
    """

    def __init__(
        self, config: JudgeConfig, concurrency: int, deadline: float, name: str = "judge"
    ) -> None:
        self._config = config
        self._deadline = deadline
        self._name = name
        self._server = _Server(config)
        self._settings = _settings_of(config)
        self._score = score_reader(config)
        self._pool = concurrent.futures.ThreadPoolExecutor(concurrency, f"{name}-judge")
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._usage = m.JudgeUsage()
        self._known: collections.OrderedDict[bytes, float] = collections.OrderedDict()
        self._proven = False
        self._failures = 0

    def judge(self, samples: list[Sample]) -> list[float | Exception]:
        """Returns a reward from 0 to 1 per response, or why it failed.

        Raises:
            BrokenReward: The judge has failed several times and never given a score.
        """
        rewards: list[float | Exception] = [RoleError(f"{self._name}: not judged") for _ in samples]
        places: dict[bytes, list[int]] = {}
        questions: dict[bytes, str] = {}
        for i, sample in enumerate(samples):
            try:
                question = fill(self._config.prompt, sample, "judge.prompt")
            except RoleError as error:
                rewards[i] = error
                self._note_failure(error)
                continue
            key = hashlib.blake2b(question.encode("utf-8", "replace"), digest_size=16).digest()
            places.setdefault(key, []).append(i)
            questions[key] = question
        asked: dict[concurrent.futures.Future[float], bytes] = {}
        for key, question in questions.items():
            score = self._known.get(key)
            if score is None:
                asked[self._pool.submit(self._ask, question)] = key
                self._usage_of(cached=len(places[key]) - 1)
                continue
            self._known.move_to_end(key)
            self._usage_of(cached=len(places[key]))
            for i in places[key]:
                rewards[i] = score
        self._collect(asked, places, rewards)
        return rewards

    def take_usage(self) -> m.JudgeUsage | None:
        """Returns the requests, tokens and cost since the last call, or None if there was no request."""
        with self._lock:
            taken, self._usage = self._usage, m.JudgeUsage()
        return taken if taken != m.JudgeUsage() else None

    def close(self) -> None:
        self._stopped.set()
        self._server.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _collect(
        self,
        asked: dict[concurrent.futures.Future[float], bytes],
        places: dict[bytes, list[int]],
        rewards: list[float | Exception],
    ) -> None:
        try:
            for future in concurrent.futures.as_completed(asked):
                key = asked[future]
                try:
                    score = future.result()
                except Exception as error:
                    for i in places[key]:
                        rewards[i] = RoleError(one_line(error))
                    self._note_failure(error)
                    continue
                self._proven = True
                self._keep(key, score)
                for i in places[key]:
                    rewards[i] = score
        finally:
            for future in asked:
                future.cancel()

    def _keep(self, key: bytes, score: float) -> None:
        self._known[key] = score
        while len(self._known) > self._config.cache:
            self._known.popitem(last=False)

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        if not self._proven and self._failures >= MOST_FAILURES:
            self._failures = 0
            raise BrokenReward(one_line(error))

    def _usage_of(self, **more: float) -> None:
        with self._lock:
            for name, count in more.items():
                setattr(self._usage, name, getattr(self._usage, name) + count)

    def _ask(self, question: str) -> float:
        """The reward for a question. Runs in a thread of the pool."""
        began = time.monotonic()
        end = began + self._deadline
        requests, why, pause = 0, "", _FIRST_PAUSE
        while requests < self._config.attempts and not self._stopped.is_set():
            try:
                requests += 1
                self._usage_of(requests=1, retries=1 if requests > 1 else 0)
                return self._request(question, end)
            except _Temporary as error:
                why = str(error)
                wait = min(pause, _LONGEST_PAUSE) if error.after is None else error.after
            if time.monotonic() + wait >= end:
                break
            if requests < self._config.attempts:
                self._stopped.wait(wait)
            pause *= 2
        took = time.monotonic() - began
        times = "1 request" if requests == 1 else f"{requests} requests"
        raise RoleError(f"{self._name} {self._config.url}: {why} ({times} in {took:.1f} s)")

    def _request(self, question: str, end: float) -> float:
        c = self._config
        system = [{"role": "system", "content": c.system}] if c.system else []
        messages = [*system, {"role": "user", "content": question}]
        reply = self._server.post({"messages": messages, **self._settings}, end)
        usage = reply.get("usage")
        read, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        cost = (read * c.input_price + written * c.output_price) / 1e6
        self._usage_of(input_tokens=read, output_tokens=written, cost=cost)
        try:
            text = reply["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise _Temporary("the reply has no text at choices[0].message.content")
        return self._score(text)


def _settings_of(config: JudgeConfig) -> dict[str, Any]:
    """The fields of the body that are the same in each request."""
    limits = {"temperature": config.temperature, "max_tokens": config.max_tokens}
    given = {name: value for name, value in limits.items() if value is not None}
    return {"model": config.model, **given, **json.loads(config.extra_body or "{}")}


def _count(usage: Any, name: str) -> int:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and 0 <= count < 1 << 40 else 0


def compiled(pattern: str, key: str = "judge.pattern") -> re.Pattern[str]:
    """Compiles `judge.pattern`; `key`: how errors name it.

    Raises:
        RoleError: It is no regular expression, or has several groups.
    """
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise RoleError(f"{key}: not a regular expression of Python: {error}") from None
    if found.groups > 1:
        raise RoleError(f"{key}: expected at most one group, found {found.groups}")
    return found


def score_reader(config: JudgeConfig) -> Callable[[str], float]:
    """Returns a function that reads the reward from a reply, and raises if it has none."""
    pattern = compiled(config.pattern) if config.pattern else None

    def read(text: str) -> float:
        found = _last_match(pattern, text) if pattern else _last_value(config.field, text)
        where = f"match of `{config.pattern}`" if pattern else f'JSON object with "{config.field}"'
        if found is None:
            raise _Temporary(f"the reply has no {where}: {_excerpt(text)}")
        try:
            score = float(found)
        except (TypeError, ValueError):
            raise _Temporary(f"the score {_excerpt(str(found))} is no number") from None
        if not config.lowest <= score <= config.highest:
            raise _Temporary(
                f"the score {score:g} is not from {config.lowest:g} to {config.highest:g}"
            )
        return (score - config.lowest) / (config.highest - config.lowest)

    return read


def _last_match(pattern: re.Pattern[str], text: str) -> str | None:
    found = [match.group(pattern.groups) for match in pattern.finditer(text)]
    return found[-1] if found else None


def _last_value(field: str, text: str) -> Any:
    """The value of the field in the last JSON object of the text that has it."""
    decoder = json.JSONDecoder()
    value, at = None, text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            value = found.get(field, value)
        at = text.find("{", end)
    return value


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return json.dumps(flat if len(flat) <= 160 else flat[:160] + "...", ensure_ascii=False)


class _Server:
    """POST requests with JSON. Used by many threads."""

    def __init__(self, config: JudgeConfig) -> None:
        url = urllib.parse.urlsplit(config.url)
        self._host, self._secure = url.hostname or "", url.scheme == "https"
        self._port = url.port or (443 if self._secure else 80)
        self._path = url.path.rstrip("/") + "/chat/completions"
        self._key = ""
        if config.key_variable:
            self._key = os.environ.get(config.key_variable, "").strip()
            if not self._key:
                raise RoleError(
                    f"judge.key_variable: the environment variable {config.key_variable} is not set "
                    "where the reward actor runs"
                )
        self._proxy = None if self._host in _LOOPBACK else _proxy_of(url.scheme, self._host)
        self._context = ssl.create_default_context() if self._secure else None
        self._open: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()

    def post(self, body: dict[str, Any], end: float) -> dict[str, Any]:
        """Returns the JSON object of the reply.

        Raises:
            _Temporary: The request failed, but may succeed later.
            RoleError: It would fail again.
        """
        left = end - time.monotonic()
        if left <= 0:
            raise _Temporary("no time is left")
        connection, path = self._connection(left)
        late = threading.Timer(left, _shut, [connection])  # the limit of the socket is per read
        late.daemon = True
        with self._lock:
            self._open.add(connection)
        try:
            late.start()
            status, headers, text = self._exchange(connection, path, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if time.monotonic() >= end:
                raise _Temporary("no reply before the deadline") from None
            raise _Temporary(f"{type(error).__name__}: {error}") from None
        finally:
            late.cancel()
            with self._lock:
                self._open.discard(connection)
            connection.close()
        return self._answer(status, headers, text)

    def close(self) -> None:
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def _exchange(
        self, connection: http.client.HTTPConnection, path: str, body: dict[str, Any]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection.request("POST", path, json.dumps(body).encode(), headers)
        reply = connection.getresponse()
        text = reply.read(_LONGEST_REPLY + 1)
        if len(text) > _LONGEST_REPLY:
            raise ValueError(f"the reply is longer than {_LONGEST_REPLY} bytes")
        return reply.status, reply.headers, text

    def _answer(self, status: int, headers: http.client.HTTPMessage, text: bytes) -> dict[str, Any]:
        shown = text.decode("utf-8", "replace")
        if self._key:
            shown = shown.replace(self._key, "***")
        if status != 200:
            why = f"HTTP {status}: {_excerpt(_message_in(shown))}"
            if status in _TEMPORARY or status >= 500:
                raise _Temporary(why, _seconds(headers.get("Retry-After")))
            raise RoleError(f"judge: {self._path} of {self._host}:{self._port}: {why}")
        try:
            reply = json.loads(shown)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise _Temporary(f"the reply is no JSON object: {_excerpt(shown)}")
        return reply

    def _connection(self, left: float) -> tuple[http.client.HTTPConnection, str]:
        host, port, path = self._host, self._port, self._path
        if self._proxy is not None:
            host, port = self._proxy
        if self._secure:
            secure = http.client.HTTPSConnection(host, port, timeout=left, context=self._context)
            if self._proxy is not None:
                secure.set_tunnel(self._host, self._port)
            return secure, path
        if self._proxy is not None:
            path = f"http://{self._host}:{self._port}{path}"
        return http.client.HTTPConnection(host, port, timeout=left), path


def _proxy_of(scheme: str, host: str) -> tuple[str, int] | None:
    given = urllib.request.getproxies().get(scheme)
    if not given or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.parse.urlsplit(given if "//" in given else "//" + given)
    return (proxy.hostname, proxy.port or 3128) if proxy.hostname else None


def _message_in(text: str) -> str:
    """The message of an error in OpenAI's form, or the whole text."""
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else min(max(float(text), 0.0), 3600.0)
    except ValueError:
        return None


def _shut(connection: http.client.HTTPConnection) -> None:
    sock = connection.sock
    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
