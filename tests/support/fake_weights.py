"""Weights of fake_server.py: a table, or the policy of a model folder (fake_policy.py)."""
import json
import math
import os
import struct

from fake_openai import gguf_table


class Weights:
    """The table of a folder; a folder without one (synthetic weights) gives an even table. With `network`: the policy
    that the folder really has. The folder of an adapter has a table of its own; with `network`, it changes the policy
    of `base`."""

    def __init__(self, folder, vocabulary, network=False, base=None):
        self.policy = None
        if network and folder:
            from fake_policy import Policy

            self.policy = base.policy.with_adapter(folder) if base else Policy(folder)
            return
        self.rows = [[0.0] * vocabulary for _ in range(vocabulary)]
        if folder.endswith(".gguf"):
            self.rows = gguf_table(folder, vocabulary)
            return
        path = os.path.join(folder, "adapter_model.safetensors" if base else "model.safetensors") if folder else ""
        if not os.path.exists(path):
            return
        assert os.path.exists(os.path.join(folder, "STABLE")), "a folder that is not whole"
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
            tensor = header["model.embed_tokens.weight"]
            rows, width = tensor["shape"]
            file.seek(8 + length + tensor["data_offsets"][0])
            for i in range(rows):
                row = struct.unpack(f"<{width}f", file.read(4 * width))
                self.rows[i] = list(row[:vocabulary])

    def after(self, tokens):
        """Log-probs of what follows each of them."""
        if self.policy is not None:
            return self.policy.logprobs(tokens).tolist()
        return [log_softmax(self.rows[token]) for token in tokens]

    def forget(self):
        """Nothing of them is left."""
        if self.policy is not None:
            self.policy.forget()
        self.rows = [[0.0] * len(row) for row in self.rows] if self.policy is None else []

    def half_of(self, other):
        if self.policy is not None:
            self.policy.half_of(other.policy)
            return
        for i in range(0, len(self.rows), 2):
            self.rows[i] = other.rows[i]


def log_softmax(logits):
    top = max(logits)
    total = math.log(sum(math.exp(x - top) for x in logits)) + top
    return [x - total for x in logits]
