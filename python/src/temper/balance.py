"""Divides the rows of a minibatch among the ranks of a trainer."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def balanced(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Divides rows into parts of about the same size, by the largest differencing method of Karmarkar and Karp.

    The result depends on the arguments only, so all ranks compute the same one.

    Args:
        sizes: The size of each row, such as its tokens.
        parts: Number of parts; with fewer rows, some parts are empty.

    Returns:
        For each part, indices into `sizes` in ascending order. The totals of two parts differ by at
        most the largest size.
    """
    # Each entry of the heap divides some of the rows: it has parts as (total, indices), the largest
    # first. Entries are in the order of the spread of their totals, and equal ones by age.
    heap = [
        (-size, i, [(size, [i]), *[(0, list[int]())] * (parts - 1)]) for i, size in enumerate(sizes)
    ]
    heapq.heapify(heap)
    for age in range(len(sizes), 2 * len(sizes) - 1):
        (_, _, first), (_, _, second) = heapq.heappop(heap), heapq.heappop(heap)
        # The largest part of one joins the smallest of the other, so the spread is at most the larger of theirs.
        joined = [(a + b, x + y) for (a, x), (b, y) in zip(first, reversed(second))]
        joined.sort(key=lambda part: -part[0])
        heapq.heappush(heap, (joined[-1][0] - joined[0][0], age, joined))
    return [sorted(indices) for _, indices in heap[0][2]] if heap else [[] for _ in range(parts)]
