"""Causal language models of `transformers`: folder, device, weights by name, log-probs."""

from __future__ import annotations

import dataclasses
import pathlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from ..errors import RoleError
from ..roles import Role
from ..weights import Weights
from .lora import adapter_tensors


def model_folder(role: Role, given: str | None) -> pathlib.Path:
    folder = pathlib.Path(given) if given else role.base_weights
    if folder is None:
        raise RoleError("no model folder: set model.path of the run, or `with: {model: DIR}`")
    if not (folder / "config.json").is_file():
        raise RoleError(f"{folder}: expected a model folder, but it has no config.json")
    return folder


def choose_device(given: str | None, rank: int = 0) -> torch.device:
    """The device `cpu`, `cuda` or `cuda:1`; None: a GPU if there is one."""
    if given and given != "cuda":
        return torch.device(given)
    if torch.cuda.is_available():
        return torch.device("cuda", rank % torch.cuda.device_count())
    if given:
        raise RoleError(
            "device: cuda: torch finds no GPU; use cpu, or check torch.cuda.is_available()"
        )
    return torch.device("cpu")


def choose_dtype(given: str | None, device: torch.device) -> torch.dtype:
    """The data type of computations; None: bfloat16 on a GPU, else float32."""
    if given is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if given not in known:
        raise RoleError(f'dtype: expected {" or ".join(known)}, found "{given}"')
    return known[given]


def use_cores(role: Role) -> None:
    """Limits torch to one thread per card of the role; on hosts without accelerators cards are cores."""
    if role.cards:
        torch.set_num_threads(len(role.cards))


def open_model(folder: pathlib.Path, dtype: torch.dtype, device: torch.device) -> Any:
    transformers_logging.disable_progress_bar()  # a worker's output is a log
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise RoleError(f"model folder {folder}: {error}") from error
    return model.to(device).eval()


def context_of(model: Any) -> int:
    return int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)


def tensor_of(weights: Weights, name: str) -> torch.Tensor:
    """A view of a tensor in an image; read-only."""
    array = weights[name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        if weights.dtype(name) == "BF16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)


def matched(model: Any, weights: Weights) -> Iterator[tuple[torch.nn.Parameter, torch.Tensor]]:
    """Yields the model's parameters, or those of its adapters if it has any, with the tensors of an image.

    Raises:
        RoleError: A tensor is missing or unknown. The second name of a tied tensor is optional.
    """
    parameters = adapter_tensors(model)
    tied: set[str] = set()
    if not parameters:
        parameters = dict(model.named_parameters())
        tied = set(dict(model.named_parameters(remove_duplicate=False))) - set(parameters)
    unknown = set(weights) - set(parameters) - tied
    missing = set(parameters) - set(weights)
    if unknown or missing:
        what = (
            f"tensor {min(missing)} is missing"
            if missing
            else f"the model has no tensor {min(unknown)}"
        )
        raise RoleError(f"weights: {what}")
    for name, parameter in parameters.items():
        yield parameter, tensor_of(weights, name)


def load_weights(model: Any, weights: Weights, device: torch.device) -> None:
    """Loads all weights, or the adapters, also into parameters whose memory was released."""
    shapes = getattr(model, "_temper_shapes", None)
    if shapes is None:
        shapes = model._temper_shapes = {id(p): tuple(p.shape) for p in model.parameters()}
    for parameter, tensor in matched(model, weights):
        if tuple(tensor.shape) != shapes[id(parameter)]:
            raise RoleError(
                f"weights: expected a tensor of shape {shapes[id(parameter)]}, found {tuple(tensor.shape)}"
            )
        if parameter.numel() == tensor.numel():
            parameter.data.copy_(tensor)
        else:
            parameter.data = tensor.to(device=device, dtype=parameter.dtype, copy=True)


def drop_weights(model: Any) -> None:
    """Releases the memory of the weights until load_weights()."""
    if not hasattr(model, "_temper_shapes"):
        model._temper_shapes = {id(p): tuple(p.shape) for p in model.parameters()}
    for parameter in model.parameters():
        parameter.data = parameter.data.new_empty(0)
    release(next(model.parameters()).device)


def release(device: torch.device) -> None:
    """Returns torch's cached memory to the device, for other processes."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def bytes_of(tensors: Any) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


@dataclasses.dataclass(slots=True)
class Padded:
    """Prompts with their responses, each a row.

    Attributes:
        ids: Tokens, [rows, longest].
        there: 1 where a row has a token, else 0.
        shortest_prompt: Length of the shortest prompt.
        places: By response token, its place among the tokens after the shortest prompt, [rows, longest response].
    """

    ids: torch.Tensor
    there: torch.Tensor
    shortest_prompt: int
    places: torch.Tensor


def padded(pairs: Sequence[tuple[np.ndarray, np.ndarray]], device: torch.device) -> Padded:
    """Prompts and responses (token ids) as rows of equal length. Places after the end of a response are undefined."""
    lengths = [prompt.size + response.size for prompt, response in pairs]
    longest = max(lengths)
    shortest_prompt = min(prompt.size for prompt, _ in pairs)
    tokens = np.zeros((len(pairs), longest), np.int64)
    for row, (prompt, response) in zip(tokens, pairs):
        row[: prompt.size] = prompt
        row[prompt.size : prompt.size + response.size] = response
    there = (
        torch.arange(longest, device=device)[None, :]
        < torch.tensor(lengths, device=device)[:, None]
    )
    width = max(response.size for _, response in pairs)
    places = torch.tensor([prompt.size - shortest_prompt for prompt, _ in pairs], device=device)[
        :, None
    ]
    places = places + torch.arange(width, device=device)[None, :]
    return Padded(
        torch.from_numpy(tokens).to(device),
        there.long(),
        shortest_prompt,
        places.clamp(max=max(0, longest - shortest_prompt - 1)),
    )


def _logits(model: Any, batch: Padded, temperature: float) -> torch.Tensor:
    """Logits that predict the tokens after the shortest prompt, at this temperature."""
    # Logits at the last prompt token of the shortest prompt, and after it.
    keep = batch.ids.shape[1] - batch.shortest_prompt + 1
    logits: torch.Tensor = model(
        input_ids=batch.ids, attention_mask=batch.there, logits_to_keep=keep, use_cache=False
    ).logits
    return logits[:, :-1].float() / temperature


def _targets(batch: Padded) -> torch.Tensor:
    return batch.ids[:, batch.shortest_prompt :, None]


def _at_responses(values: torch.Tensor, batch: Padded) -> torch.Tensor:
    """Of values after the shortest prompt, [rows, tokens, k], those of response tokens."""
    return values.gather(1, batch.places[:, :, None].expand(-1, -1, values.shape[2]))


def response_logprobs(
    model: Any,
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    temperature: float,
    device: torch.device,
) -> torch.Tensor:
    """Computes log-probs of responses.

    Args:
        model: The model.
        pairs: Prompts and responses as token ids.
        temperature: Temperature of the logits.
        device: Device of the model.

    Returns:
        Log-probs (nats) of response tokens, shape [pairs, longest response], with a graph in grad mode. Entries after
        the end of a shorter response are undefined.
    """
    batch = padded(pairs, device)
    logits = _logits(model, batch, temperature)
    logprobs = logits.gather(2, _targets(batch)) - logits.logsumexp(2, keepdim=True)
    return _at_responses(logprobs, batch)[:, :, 0]


def candidate_logprobs(
    model: Any,
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    candidates: Sequence[np.ndarray],
    temperature: float,
    device: torch.device,
) -> torch.Tensor:
    """Log-probs as in response_logprobs(), of each response token and then of its k candidates.

    Args:
        model: The model.
        pairs: Prompts and responses as token ids.
        candidates: For each of them, token ids of shape [response tokens, k].
        temperature: Temperature of the logits.
        device: Device of the model.

    Returns:
        Log-probs (nats), shape [pairs, longest response, 1 + k].
    """
    batch = padded(pairs, device)
    logits = _logits(model, batch, temperature)
    ids = np.zeros((len(pairs), logits.shape[1], candidates[0].shape[1]), np.int64)
    for row, (prompt, _), chosen in zip(ids, pairs, candidates):
        begin = prompt.size - batch.shortest_prompt
        row[begin : begin + len(chosen)] = chosen
    wanted = torch.cat([_targets(batch), torch.from_numpy(ids).to(device)], 2)
    return _at_responses(logits.gather(2, wanted) - logits.logsumexp(2, keepdim=True), batch)


def top_logprobs(
    model: Any,
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    top_k: int,
    temperature: float,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The log-probs of candidate_logprobs(), with the most likely tokens as candidates, and their ids."""
    batch = padded(pairs, device)
    logits = _logits(model, batch, temperature)
    top = logits.topk(top_k, 2)
    values = torch.cat([logits.gather(2, _targets(batch)), top.values], 2)
    logprobs = values - logits.logsumexp(2, keepdim=True)
    return _at_responses(logprobs, batch), _at_responses(top.indices, batch)


def packed(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], order: Sequence[int], tokens: int
) -> list[list[int]]:
    """Splits `order` (indices into pairs) into passes of at most `tokens` padded tokens. A longer row is a pass by itself."""
    passes: list[list[int]] = []
    longest = 0
    for i in order:
        size = pairs[i][0].size + pairs[i][1].size
        longest = max(longest, size)
        if not passes or (len(passes[-1]) + 1) * longest > tokens:
            passes.append([])
            longest = size
        passes[-1].append(i)
    return passes


def named_tensors(model: Any) -> Mapping[str, torch.nn.Parameter]:
    """The trained parameters as they are published: those of the adapters, or each tensor once, under its first name."""
    return adapter_tensors(model) or dict(model.named_parameters())
