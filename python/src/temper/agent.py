"""An agent that plays episodes, started by `rollout.agent.command` of a run. docs/how-to/agents.md has the details.

    import temper.agent

    async def play(episode):
        turn = await episode.turn(stop=["="])     # the policy continues the text so far
        episode.give(my_tool(turn.text))          # tool output is not trained
        answer = await episode.turn()
        return 1.0 if right(answer.text) else 0.0

    temper.agent.run(play)

Programs in other languages work too: they read one JSON line per episode from stdin, write one line to stdout when it
ends, and in between send requests to `base_url`, an OpenAI-compatible server.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from .errors import escaped, message_of


class Refused(RuntimeError):
    """The run does not sample this turn.

    The message has the reason: the response is full, the episode has used its turns, or it was withdrawn.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, status: int, reason: str):
        super().__init__(f"status {status}: {reason}")
        self.status = status


class Turn:
    """One turn of the policy.

    Attributes:
        text: Sampled text, without the token that ended the turn.
        tokens: Sampled token ids, including the one that ended the turn.
        logprobs: Log-probability (nats) of each token.
        finish: `stop` or `length`.
    """

    def __init__(self, text: str, tokens: list[int], logprobs: list[float], finish: str):
        self.text = text
        self.tokens = tokens
        self.logprobs = logprobs
        self.finish = finish


class Episode:
    """One episode, which becomes one response.

    Attributes:
        id: Id of the episode.
        base_url: URL of its OpenAI-compatible server.
        prompt: Text of the prompt.
        prompt_token_ids: Token ids of the prompt.
        text: Prompt, turns and given texts so far.
        counts: Counters that the worker's log adds up.
    """

    def __init__(self, line: dict[str, Any], connections: _Connections):
        self.id: str = line["episode"]
        self.base_url: str = line["base_url"]
        self.prompt: str = line["prompt"]
        self.prompt_token_ids: list[int] = line["prompt_token_ids"]
        self.text = self.prompt
        self.counts: dict[str, float] = {}
        self._connections = connections

    async def turn(self, *, max_tokens: int | None = None, stop: Sequence[str] = ()) -> Turn:
        """Lets the policy continue `text`.

        Args:
            max_tokens: Maximum number of tokens to sample; None: as many as fit.
            stop: Texts that end the turn.

        Returns:
            The sampled turn, which is also appended to `text`.

        Raises:
            Refused: The run does not sample this turn.
        """
        body: dict[str, Any] = {"model": "policy", "prompt": self.text}
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        if stop:
            body["stop"] = list(stop)
        answer = await self.request("/v1/completions", body)
        choice = answer["choices"][0]
        self.text += choice["text"]
        return Turn(choice["text"], choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"])

    def give(self, text: str) -> None:
        """Appends text from a tool, a user or a game. It becomes part of the response, but is not trained.

        Args:
            text: The text to append.
        """
        self.text += text

    def count(self, name: str, by: float = 1) -> None:
        """Adds to a counter that the worker's log sums up, such as tool calls.

        Args:
            name: Name of the counter.
            by: Amount to add.
        """
        self.counts[name] = self.counts.get(name, 0) + by

    async def request(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Sends a POST request to the episode's server.

        Args:
            path: Route, such as `/v1/completions`.
            body: JSON body.

        Returns:
            The JSON answer.

        Raises:
            Refused: The status is not 200.
        """
        status, answer = await self._connections.post(self.base_url + path, json.dumps(body).encode())
        if status != 200:
            error = answer.get("error") if isinstance(answer, dict) else answer
            raise Refused(status, error.get("message", "") if isinstance(error, dict) else str(error))
        return dict(answer)


class _Connections:
    """Keep-alive connections to the endpoint."""

    def __init__(self) -> None:
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, url: str, body: bytes) -> tuple[int, Any]:
        where = urlsplit(url)
        head = (f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(
            where.hostname, where.port, limit=1 << 24)
        try:
            writer.write(head + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            length = next(int(line.split(":", 1)[1]) for line in lines if line.lower().startswith("content-length:"))
            answer = json.loads(await reader.readexactly(length))
        except BaseException:
            writer.close()
            raise
        self._idle.append((reader, writer))
        return int(lines[0].split()[1]), answer


def run(play: Callable[[Episode], Awaitable[float | None]]) -> None:
    """Plays the run's episodes concurrently until the run ends.

    Args:
        play: Plays one episode and returns its reward (None: 0), which is added to the verifier's. If it raises, the
            response fails and the worker's log has the reason.
    """
    asyncio.run(_run(play))


async def _run(play: Callable[[Episode], Awaitable[float | None]]) -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    connections = _Connections()
    playing: set[asyncio.Task[None]] = set()
    while line := await lines.readline():
        task = asyncio.create_task(_play(play, Episode(json.loads(line), connections)))
        playing.add(task)
        task.add_done_callback(playing.discard)


async def _play(play: Callable[[Episode], Awaitable[float | None]], episode: Episode) -> None:
    try:
        reward = float(await play(episode) or 0.0)
        if not math.isfinite(reward):
            raise ValueError(f"expected a finite reward, found {reward}")
        counts = {escaped(str(name)): count for name, count in episode.counts.items()}
        said = {"episode": episode.id, "reward": reward, "counts": counts}
        line = json.dumps(said, allow_nan=False, default=float)  # also of numbers of numpy
    except Exception as error:  # any error fails this episode only
        line = json.dumps({"episode": episode.id, "error": f"{type(error).__name__}: {message_of(error)}"})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
