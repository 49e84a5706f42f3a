"""Tasks of the package reasoning-gym, scored by its own scorers.

    python -m temper.data reasoning_gym:chain_sum sums.jsonl --size 5000 --set min_terms=2 --set max_terms=2

    task: {kind: jsonl, path: sums.jsonl}
    verifier: {kind: python, function: "temper.reasoning_gym:score"}

Each row has the data for its scorer (columns `task` and `metadata`), so files of several tasks can be concatenated.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from .errors import RoleError


def rows(name: str, size: int, seed: int, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Problems of one task as rows of a JSONL file.

    Args:
        name: Name of the task, such as `chain_sum`.
        size: Number of problems.
        seed: Seed of the problems.
        settings: Settings of the task.

    Yields:
        Rows with prompt, answer, task and metadata.

    Raises:
        RoleError: There is no such task or setting.
    """
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
                f"reasoning_gym:{name}: cannot store its metadata as JSON: {error}"
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
    """A reward function: the score of the task's own scorer, 0 to 1, per completion; None for rows of other tasks."""
    given: list[float | None] = []
    for prompt, completion, right, name, about in zip(prompts, completions, answer, task, metadata):
        if name is None:  # a row of another task
            given.append(None)
            continue
        entry = {"question": prompt, "answer": right, "metadata": about}
        given.append(float(_scorer(name)(answer=completion.strip(), entry=entry)))
    return given
