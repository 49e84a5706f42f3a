"""Shards weights over ranks (FSDP2) and gathers them."""

from __future__ import annotations

from typing import Any

import torch


def shard(model: Any, device: torch.device, dtype: torch.dtype) -> None:
    """Shards each layer, then the remaining parameters. Precondition: all ranks have the same weights."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    policy = MixedPrecisionPolicy(
        param_dtype=None if dtype == torch.float32 else dtype, reduce_dtype=torch.float32
    )
    kinds = set(getattr(model, "_no_split_modules", None) or ())
    for module in model.modules():
        if type(module).__name__ in kinds:
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def _in_shards(tensor: Any) -> bool:
    """Whether the tensor is a DTensor, as made by shard(). Avoids the import of its slow module."""
    return hasattr(tensor, "full_tensor")


def full_tensor(tensor: Any) -> Any:
    """The full tensor. A collective if the tensor is sharded."""
    return tensor.full_tensor() if _in_shards(tensor) else tensor


def put_tensor(into: Any, whole: torch.Tensor) -> None:
    if _in_shards(into):
        from torch.distributed.tensor import distribute_tensor

        part = distribute_tensor(
            whole.to(into.device), into.device_mesh, into.placements, src_data_rank=None
        )
        into.to_local().copy_(part.to_local())
    else:
        into.copy_(whole)
