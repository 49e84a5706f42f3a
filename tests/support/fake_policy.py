"""A real policy behind fake_server.py: the network of a model folder (LlamaForCausalLM, float32) in plain numpy, slow
and whole, so that a run with a real trainer can be served by a server that misbehaves as it is told."""
import copy
import json
import os
import struct

import numpy as np


def read_tensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def normalised(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class Policy:
    """Of a folder whose weights are whole."""

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json")) as file:
            self.config = json.load(file)
        self.w = read_tensors(os.path.join(folder, "model.safetensors"))
        c = self.config
        self.size = c["hidden_size"] // c["num_attention_heads"]
        self.group = c["num_attention_heads"] // c["num_key_value_heads"]
        base = c.get("rope_theta") or c["rope_parameters"]["rope_theta"]
        angles = np.arange(c["max_position_embeddings"])[:, None] * base ** (-np.arange(self.size // 2) * 2 / self.size)
        self.cos, self.sin = np.cos(angles).astype("f4"), np.sin(angles).astype("f4")

    def forget(self):
        self.w = {name: np.zeros_like(tensor) for name, tensor in self.w.items()}

    def with_adapter(self, folder):
        """This policy with the adapter of a folder of peft, merged."""
        with open(os.path.join(folder, "adapter_config.json")) as file:
            settings = json.load(file)
        adapter = read_tensors(os.path.join(folder, "adapter_model.safetensors"))
        changed = copy.copy(self)
        changed.w = dict(self.w)
        for name in adapter:
            if name.endswith("lora_B.weight"):
                layer = name.removeprefix("base_model.model.").removesuffix(".lora_B.weight") + ".weight"
                change = adapter[name] @ adapter[name.replace("lora_B", "lora_A")]
                changed.w[layer] = self.w[layer] + np.float32(settings["lora_alpha"] / settings["r"]) * change
        return changed

    def half_of(self, other):
        """Its own tensors, but every second one is that of another policy."""
        for name in sorted(self.w)[::2]:
            self.w[name] = other.w[name]

    def heads(self, x, weight):
        """[heads, T, h]"""
        return (x @ weight.T).reshape(len(x), -1, self.size).swapaxes(0, 1)

    def rotated(self, x):
        cos, sin = self.cos[: x.shape[1]], self.sin[: x.shape[1]]
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def logprobs(self, tokens):
        """Of what follows each of the tokens: [T, V]."""
        w, t = self.w, len(tokens)
        x = w["model.embed_tokens.weight"][tokens]
        hidden = np.triu(np.full((t, t), -np.inf, "f4"), 1)
        for i in range(self.config["num_hidden_layers"]):
            of = f"model.layers.{i}."
            n = normalised(x, w[of + "input_layernorm.weight"])
            q = self.rotated(self.heads(n, w[of + "self_attn.q_proj.weight"]))
            k = self.rotated(self.heads(n, w[of + "self_attn.k_proj.weight"])).repeat(self.group, 0)
            v = self.heads(n, w[of + "self_attn.v_proj.weight"]).repeat(self.group, 0)
            seen = np.exp(log_softmax(q @ k.swapaxes(1, 2) / np.float32(self.size**0.5) + hidden))
            x = x + (seen @ v).swapaxes(0, 1).reshape(t, -1) @ w[of + "self_attn.o_proj.weight"].T
            n = normalised(x, w[of + "post_attention_layernorm.weight"])
            gate = n @ w[of + "mlp.gate_proj.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (n @ w[of + "mlp.up_proj.weight"].T)) @ w[of + "mlp.down_proj.weight"].T
        return log_softmax(normalised(x, w["model.norm.weight"]) @ w["lm_head.weight"].T)
