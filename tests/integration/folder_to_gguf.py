"""A Llama's folder of float32 safetensors as a GGUF file: what a user does whose server of `kind: openai` wants one (as
convert_hf_to_gguf.py of llama.cpp, without a tokenizer). Written apart from actors/model_folder/gguf.cpp.

    python folder_to_gguf.py FOLDER FILE [F32|F16|BF16]

Vectors stay in float32, as llama.cpp expects. Types other than F32 need numpy.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
WHOLE = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight",
         "model.norm.weight": "output_norm.weight"}

TYPES = {"F32": 0, "F16": 1, "BF16": 30}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key: str, value: object) -> bytes:
    if isinstance(value, bool):
        return text(key) + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    assert isinstance(value, list)
    kind, pack = {str: (8, text), float: (6, lambda x: struct.pack("<f", x)),
                  int: (5, lambda x: struct.pack("<i", x))}[type(value[0])]
    return text(key) + struct.pack("<IIQ", 9, kind, len(value)) + b"".join(pack(x) for x in value)


def name_of(stored: str) -> str:
    if stored in WHOLE:
        return WHOLE[stored]
    layer, rest = stored.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[rest.removesuffix('.weight')]}.weight"


def neighbours(data: bytes, rows: int, head: int) -> bytes:
    """Rows i and i + head/2 of each head beside each other."""
    width = len(data) // rows
    order = [h + i // 2 + i % 2 * head // 2 for h in range(0, rows, head) for i in range(head)]
    return b"".join(data[row * width:(row + 1) * width] for row in order)


def as_type(data: bytes, kind: str) -> bytes:
    """Of float32 values, each rounded to the nearest."""
    import numpy as np

    if kind == "F16":
        return np.frombuffer(data, "<f4").astype("<f2").tobytes()
    bits = np.frombuffer(data, "<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def main(folder: Path, file: Path, kind: str = "F32", tokenizer: dict[str, object] | None = None) -> None:
    """`tokenizer`: keys in the place of those of tokens by their ids."""
    c = json.loads((folder / "config.json").read_text())
    image = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", image)
    header = json.loads(image[8:8 + length])
    vocabulary, head = c["vocab_size"], c["head_dim"]
    keys = {"general.architecture": "llama", "llama.block_count": c["num_hidden_layers"],
            "llama.context_length": c["max_position_embeddings"], "llama.embedding_length": c["hidden_size"],
            "llama.feed_forward_length": c["intermediate_size"], "llama.attention.head_count": c["num_attention_heads"],
            "llama.attention.head_count_kv": c["num_key_value_heads"], "llama.rope.dimension_count": head,
            "llama.attention.layer_norm_rms_epsilon": c["rms_norm_eps"], "llama.rope.freq_base": float(c["rope_theta"]),
            "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [f"<{i}>" for i in range(vocabulary)],
            "tokenizer.ggml.scores": [0.0] * vocabulary, "tokenizer.ggml.token_type": [1] * vocabulary,
            "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.add_bos_token": False,
            "tokenizer.ggml.add_space_prefix": False}
    if isinstance(c["eos_token_id"], int):
        keys["tokenizer.ggml.eos_token_id"] = c["eos_token_id"]
    keys |= tokenizer or {}
    infos, blocks, at = [], [], 0
    tensors = {name: of for name, of in header.items() if name != "__metadata__"}
    for name, of in tensors.items():
        begin, end = of["data_offsets"]
        data = image[8 + length + begin:8 + length + end]
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            data = neighbours(data, of["shape"][0], head)
        sizes = of["shape"][::-1]
        stored = kind if len(sizes) > 1 else "F32"
        if stored != "F32":
            data = as_type(data, stored)
        infos.append(text(name_of(name)) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, TYPES[stored], at))
        blocks.append(data + bytes(-len(data) % 32))
        at += len(blocks[-1])
    head_part = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head_part += b"".join(entry(k, v) for k, v in keys.items()) + b"".join(infos)
    file.write_bytes(head_part + bytes(-len(head_part) % 32) + b"".join(blocks))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
