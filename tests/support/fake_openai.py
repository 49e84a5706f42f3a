"""The routes of fake_server.py as an OpenAI-compatible server, and as llama.cpp's, has them. Neither names its weights,
pauses or ends what runs.

How an `openai` gives token ids and the log-probs of given tokens is its style:
  prompt_logprobs   token_ids; prompt_logprobs              (vLLM)
  echo              logprobs.tokens as token_id:N; echo
  logit_bias        logprobs.content[].id; only by forcing  (llama.cpp)
POST /reload {"path", ...} loads a folder.
"""
import json
import math
import struct

PLAIN = {"model", "prompt", "max_tokens", "n", "temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs",
         "stream", "echo", "logit_bias"}


def gguf_table(path, vocabulary):
    """The rows of token_embd.weight, of float32."""
    with open(path, "rb") as file:
        def number(kind):
            size = struct.calcsize("<" + kind)
            return struct.unpack("<" + kind, file.read(size))[0]

        def text():
            return file.read(number("Q")).decode()

        def value(kind):
            if kind == 8:
                return text()
            if kind == 9:
                of, count = number("I"), number("Q")
                return [value(of) for _ in range(count)]
            return number({4: "I", 5: "i", 6: "f", 7: "?"}[kind])

        assert file.read(4) == b"GGUF" and number("I") == 3
        tensors, keys = number("Q"), number("Q")
        said = {text(): value(number("I")) for _ in range(keys)}
        places = {}
        for _ in range(tensors):
            name = text()
            sizes = [number("Q") for _ in range(number("I"))]
            assert number("I") == 0
            places[name] = (sizes, number("Q"))
        begin = (file.tell() + 31) // 32 * 32
        (width, rows), offset = places["token_embd.weight"]
        assert rows == vocabulary == len(said["tokenizer.ggml.tokens"]) and offset % 32 == 0
        file.seek(begin + offset)
        return [list(struct.unpack(f"<{width}f", file.read(4 * width))[:vocabulary]) for _ in range(rows)]


async def sample(fake, tokens, most, ends, bias):
    """(tokens, their log-probs, why it ended); with a bias one token, which has it."""
    if bias:
        token = int(next(iter(bias)))
        after = fake.weights.after(tokens if fake.network else tokens[-1:])[-1]
        forced = 0.0 if fake.fault("biased_logprobs") else after[token]
        return [token], [forced], "length"
    fake.requests += 1
    name = f"{'score' if most == 1 else 'completion'}-{fake.requests}"
    return await fake.generate(name, tokens, most, ends)


async def openai(fake, path, _, body):
    if path == "/reload":
        if not fake.load(body["path"]):
            return 500, {"error": "out of memory"}
        return 200, {"success": True}
    if path != "/v1/completions":
        return 404, {"detail": "Not Found"}
    if fake.fault("status_503"):
        return 503, {"error": "busy"}
    more = set(body) - PLAIN
    if fake.fault("strict") and more:
        return 400, {"error": f"unknown: {sorted(more)}"}
    tokens, style = body["prompt"], fake.style
    bias = body.get("logit_bias")
    if fake.fault("no_scores"):
        style, bias = "none", None
    made, logprobs, why = await sample(fake, tokens, body["max_tokens"], body.get("stop_token_ids", []), bias)
    choice = {"index": 0, "text": "", "finish_reason": why, "logprobs": None}
    if style == "echo" and body.get("echo"):
        choice["logprobs"] = {"token_logprobs": fake.score(tokens) + logprobs}
    elif "logprobs" in body and not fake.fault("no_logprobs"):
        choice["logprobs"] = says(style, made, logprobs)
    if style in ("prompt_logprobs", "none"):
        choice["token_ids"] = made
    if style == "prompt_logprobs":
        choice["prompt_logprobs"] = fake.prompt_logprobs(body, tokens)
    if fake.fault("no_token_ids"):
        choice.pop("token_ids", None)
        choice["logprobs"] = {"tokens": ["a"] * len(made), "token_logprobs": logprobs}
    read = len(tokens) + fake.fault("adds_bos")
    return 200, {"choices": [choice], "usage": {"prompt_tokens": read, "completion_tokens": len(made)}}


def says(style, made, logprobs):
    if style == "logit_bias":
        return {"content": [{"id": t, "token": f"<{t}>", "logprob": p} for t, p in zip(made, logprobs)]}
    return {"tokens": [f"token_id:{t}" if style == "echo" else "x" for t in made], "token_logprobs": logprobs}


async def llamacpp(fake, path, _, body):
    if path != "/completion":
        return 404, {"detail": "Not Found"}
    if fake.fault("status_503"):
        return 503, {"error": "busy"}
    bias = {token: value for token, value in body.get("logit_bias", [])}
    made, logprobs, why = await sample(fake, body["prompt"], body["n_predict"], [], bias)
    sampled = body.get("post_sampling_probs", False)
    beside = [{"id": t, "prob": math.exp(p)} if sampled else {"id": t, "logprob": p} for t, p in zip(made, logprobs)]
    if fake.fault("loses_logprob"):  # As of a piece of a character.
        beside = beside[1:]
    answer = {"tokens": made, "completion_probabilities": beside, "stop_type": {"stop": "eos", "length": "limit"}[why]}
    assert json.dumps(answer)
    return 200, {key: answer[key] for key in body["response_fields"] if not (key == "tokens" and fake.fault("no_token_ids"))}
