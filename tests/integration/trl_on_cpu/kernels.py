"""In the place of the package `kernels`, which fetches TRL's attention for GPUs from a hub: the same attention in
plain torch, so that TRL's trainer runs as it is on a CPU."""

from __future__ import annotations

from typing import Any

import torch


def flash_attn_varlen_func(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, starts_q: torch.Tensor, starts_k: torch.Tensor,
    longest_q: int, longest_k: int, *, softmax_scale: float | None, causal: bool, **_: Any
) -> torch.Tensor:
    """Segments of [tokens, heads, width], one after the other; a query sees the keys of its segment up to its own
    place, counted from the end."""
    assert causal
    out = []
    for q0, q1, k0, k1 in zip(starts_q[:-1], starts_q[1:], starts_k[:-1], starts_k[1:]):
        q, k, v = query[q0:q1].transpose(0, 1), key[k0:k1].transpose(0, 1), value[k0:k1].transpose(0, 1)
        groups = q.shape[0] // k.shape[0]
        k, v = k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0)
        seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
        out.append(torch.nn.functional.scaled_dot_product_attention(
            q[None], k[None], v[None], attn_mask=seen, scale=softmax_scale)[0].transpose(0, 1))
    return torch.cat(out)


def get_kernel(name: str, **_: Any) -> Any:
    import kernels

    return kernels
