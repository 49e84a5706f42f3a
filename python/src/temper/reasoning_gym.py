"""Tasks of the package reasoning-gym, judged by its own scorers.

    python -m temper.data reasoning_gym:chain_sum sums.jsonl --size 5000 --set min_terms=2 --set max_terms=2

    task: {kind: jsonl, path: sums.jsonl}
    verifier: {kind: python, function: "temper.reasoning_gym:score"}

Each row carries what its scorer needs (columns `task` and `metadata`), so files of several tasks may be put together.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from .errors import RoleError


def rows(name: str, size: int, seed: int, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Problems of one task as rows of a JSONL file. Raises RoleError where there is no such task or setting."""
    import reasoning_gym  # type: ignore[import-not-found, import-untyped, unused-ignore]

    try:
        dataset = reasoning_gym.create_dataset(name, size=size, seed=seed, **settings)
    except (ValueError, TypeError, AssertionError) as error:
        raise RoleError(f"reasoning_gym:{name}: {error}") from error
    for entry in dataset:
        metadata = entry["metadata"]
        try:
            kept = json.loads(json.dumps(metadata))
        except TypeError as error:
            raise RoleError(
                f"reasoning_gym:{name}: its metadata cannot be kept in a file: {error}"
            ) from None
        answer = "" if entry["answer"] is None else str(entry["answer"])
        yield {"prompt": entry["question"], "answer": answer, "task": name, "metadata": kept}


@functools.cache
def _scorer(name: str) -> Any:
    import reasoning_gym

    return reasoning_gym.get_score_answer_fn(name)


def score(
    prompts: list[str],
    completions: list[str],
    answer: list[str],
    task: list[str],
    metadata: list[Any],
    **_: Any,
) -> list[float | None]:
    """A reward function: what the task's own scorer says of each completion, 0 to 1."""
    given: list[float | None] = []
    for prompt, completion, right, name, about in zip(prompts, completions, answer, task, metadata):
        if name is None:  # a row of something else
            given.append(None)
            continue
        entry = {"question": prompt, "answer": right, "metadata": about}
        given.append(float(_scorer(name)(answer=completion.strip(), entry=entry)))
    return given
