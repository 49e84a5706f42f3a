"""An agent that plays episodes: `rollout.agent.command` of a run. docs/agents.md has the whole of it.

    import temper.agent

    async def play(episode):
        turn = await episode.turn(stop=["="])     # the policy goes on from what there is
        episode.give(my_tool(turn.text))          # what a tool says is not trained
        answer = await episode.turn()
        return 1.0 if right(answer.text) else 0.0

    temper.agent.run(play)

Any other program will do as well: a line of JSON for each episode comes on stdin, a line goes to stdout when it has ended,
and between the two the program is a client of `base_url`, which speaks OpenAI's routes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit


class Refused(RuntimeError):
    """The run does not sample this turn; says why (the row is full, the episode has had its turns, it was withdrawn)."""

    def __init__(self, status: int, reason: str):
        super().__init__(f"status {status}: {reason}")
        self.status = status


class Turn:
    """What the policy sampled: `text` without the token that ended it, `tokens` with it."""

    def __init__(self, text: str, tokens: list[int], logprobs: list[float], finish: str):
        self.text = text
        self.tokens = tokens
        self.logprobs = logprobs
        self.finish = finish  #: "stop" or "length"


class Episode:
    """One response in the making. `text` is all there is of it: the prompt, the turns, what was given."""

    def __init__(self, line: dict[str, Any], connections: _Connections):
        self.id: str = line["episode"]
        self.base_url: str = line["base_url"]
        self.prompt: str = line["prompt"]
        self.prompt_token_ids: list[int] = line["prompt_token_ids"]
        self.text = self.prompt
        self.counts: dict[str, float] = {}
        self._connections = connections

    async def turn(self, *, max_tokens: int | None = None, stop: Sequence[str] = ()) -> Turn:
        """The policy goes on from `text`. Raises Refused."""
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
        """What a tool, a user or a game says: part of the response from here on, and not trained."""
        self.text += text

    def count(self, name: str, by: float = 1) -> None:
        """Added up in the worker's log: tool calls, for one."""
        self.counts[name] = self.counts.get(name, 0) + by

    async def request(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST to a route of the session. Raises Refused."""
        status, answer = await self._connections.post(self.base_url + path, json.dumps(body).encode())
        if status != 200:
            error = answer.get("error") if isinstance(answer, dict) else answer
            raise Refused(status, error.get("message", "") if isinstance(error, dict) else str(error))
        return dict(answer)


class _Connections:
    """Kept-alive connections to the one endpoint."""

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
    """Plays the run's episodes, all at once, until the run ends. `play` gives the episode's reward (None: 0), which is added
    to what the verifier says; if it raises, its response fails, with the reason in the worker's log."""
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
    said: dict[str, Any] = {"episode": episode.id}
    try:
        said["reward"] = float(await play(episode) or 0.0)
        said["counts"] = episode.counts
    except Exception as error:  # noqa: BLE001 - whatever it was, the episode has failed and the others go on
        said["error"] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
