"""The line with which a Python agent ends an episode."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from test_values import NAME, SHOWN, BadText

from temper import agent


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (0.5, {"reward": 0.5, "counts": {"calls": 2.0}}),
        (None, {"reward": 0.0, "counts": {"calls": 2.0}}),
        (float("nan"), {"error": "ValueError: expected a finite reward, found nan"}),
        (OSError(NAME), {"error": f"OSError: {SHOWN}"}),
        (BadText(), {"error": "BadText: no text, since its __str__() raised KeyError"}),
    ],
)
def test_every_episode_ends_with_a_line_of_valid_json(
    capsys: pytest.CaptureFixture[str], outcome: Any, said: dict[str, Any]
) -> None:
    async def play(episode: agent.Episode) -> Any:
        episode.count("calls", np.float32(2))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    line = {"episode": "7", "base_url": "", "prompt": "", "prompt_token_ids": []}
    asyncio.run(agent._play(play, agent.Episode(line, agent._Connections())))
    assert json.loads(capsys.readouterr().out) == {"episode": "7", **said}


def test_a_count_that_is_no_number_fails_its_episode(capsys: pytest.CaptureFixture[str]) -> None:
    async def play(episode: agent.Episode) -> float:
        episode.counts["calls"] = np.ones(2)  # type: ignore[assignment]
        return 1.0

    line = {"episode": "7", "base_url": "", "prompt": "", "prompt_token_ids": []}
    asyncio.run(agent._play(play, agent.Episode(line, agent._Connections())))
    assert "TypeError" in json.loads(capsys.readouterr().out)["error"]
