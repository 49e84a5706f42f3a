"""Router replay for mixture-of-experts models: the trainer uses the experts that the engine chose.

Engine and trainer round differently, so for some tokens their routers choose other experts, and the log-probs of these
tokens differ by much more than by rounding. With replay, the trainer takes the engine's choice, and computes the
weights of the chosen experts, and their gradients, from its own router.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..errors import RoleError
from ..roles import Row

#: The name of the tensor: int16 or uint8, shape [tokens, layers, experts per token], for every token of prompt and
#: response but the last, which no engine computes.
ROUTES = "routes"

Routes = np.ndarray[Any, Any]


def routers_of(model: Any) -> list[Any]:
    """The routers of a model, in the order of its layers.

    Raises:
        RoleError: It has no router, or one that returns something else than the routers of `transformers` do.
    """
    found = [m for m in model.modules() if type(m).__name__.endswith("TopKRouter")]
    if not found:
        raise RoleError(
            f"routes: {type(model).__name__} has no module of a class `...TopKRouter`, as the mixture-of-experts models "
            "of transformers 5 have; remove record_routes and replay_routes"
        )
    return found


class Recorder:
    """Notes the experts that the routers of a model choose."""

    def __init__(self, model: Any) -> None:
        self._chosen: list[torch.Tensor] = []
        routers = routers_of(model)
        experts = max(int(r.num_experts) for r in routers)
        self._dtype = torch.uint8 if experts <= 256 else torch.int16
        for router in routers:
            router.register_forward_hook(self._note)

    def _note(self, router: Any, arguments: Any, output: Any) -> None:
        self._chosen.append(output[2].to(self._dtype))

    def take(self, rows: int) -> np.ndarray[Any, Any]:
        """The experts of the last pass: shape [rows, tokens, layers, experts per token]."""
        chosen = torch.stack(self._chosen, 1).cpu().numpy()
        self._chosen = []
        return chosen.reshape(rows, -1, *chosen.shape[1:])


class Replay:
    """Makes the routers of a model choose given experts."""

    def __init__(self, model: Any) -> None:
        self._routers = routers_of(model)
        self._checked: set[int] = set()  #: Layers whose router was compared with expert_weights().
        self._given: torch.Tensor | None = None  #: [layers, tokens of the pass, experts per token]; -1: its own choice
        for layer, router in enumerate(self._routers):
            router.register_forward_hook(
                lambda router, arguments, output, layer=layer: self._replace(layer, router, output)
            )

    @staticmethod
    def check(rows: Sequence[Row]) -> None:
        """Raises RoleError if no response of a batch has routes."""
        if not any(ROUTES in row.tensors for row in rows):
            raise RoleError(
                f"replay_routes: expected the tensor {ROUTES} with each response, found none; set record_routes in "
                "`rollout.engine.with`"
            )

    def routes_of(self, row: Row) -> Routes | None:
        """Reads the routes of a response; None if it has none.

        Raises:
            RoleError: They cannot be read, or are of another model, or of another number of tokens.
        """
        if ROUTES not in row.tensors:
            return None
        routes = row.tensors[ROUTES]
        tokens = row.prompt.size + row.response.size - 1
        expected = (tokens, len(self._routers), int(self._routers[0].top_k))
        if routes.shape != expected:
            raise RoleError(
                f"response {row.id} of group {row.group}: expected {ROUTES} of shape {expected} (tokens, layers, "
                f"experts per token), found {routes.shape}; engine and trainer need the same model"
            )
        return routes

    def use(self, rows: Sequence[Row], found: Sequence[Routes | None]) -> None:
        """Sets the experts of the next passes over these rows, which are padded to the longest on the right.

        They remain set for the backward pass, which may compute the layers again. Rows without routes use the
        trainer's own choice.
        """
        layers, experts = len(self._routers), int(self._routers[0].top_k)
        longest = max(row.prompt.size + row.response.size for row in rows)
        given = np.full((len(rows), longest, layers, experts), -1, np.int64)
        for place, routes in zip(given, found):
            if routes is not None:
                place[: len(routes)] = routes
        device = next(self._routers[0].parameters()).device
        self._given = torch.from_numpy(given).flatten(0, 1).transpose(0, 1).to(device)

    def _replace(self, layer: int, router: Any, output: Any) -> Any:
        if self._given is None:
            return None
        logits, scores, chosen = output
        if layer not in self._checked:
            check_router(router, output)
            self._checked.add(layer)
        given = self._given[layer]
        chosen = torch.where(given < 0, chosen, given)
        return logits, expert_weights(router, logits, chosen).to(scores.dtype), chosen


def expert_weights(router: Any, logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The weights of the chosen experts, shape [tokens, experts per token]."""
    p = logits.softmax(-1, dtype=torch.float).gather(1, chosen)
    return p / p.sum(-1, keepdim=True) if getattr(router, "norm_topk_prob", True) else p


def check_router(router: Any, output: Any) -> None:
    """Raises RoleError unless expert_weights() gives the router's weights for its own choice."""
    logits, scores, chosen = (part.detach() for part in output)
    own = expert_weights(router, logits, chosen)
    if own.shape != scores.shape or not torch.allclose(own, scores.float(), rtol=0.02, atol=1e-3):
        raise RoleError(
            f"replay_routes: {type(router).__name__} does not weight its experts by the softmax of its logits, which is "
            "all that replay knows; remove replay_routes"
        )
