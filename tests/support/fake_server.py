#!/usr/bin/env python3
"""An inference server that misbehaves as it is told: vLLM's routes, SGLang's, OpenAI's or llama.cpp's
(fake_openai.py), without a model worth the name. Its policy is a table: the log-probs of the token after t are log softmax of the first V
numbers of row t of model.embed_tokens.weight, so that whoever has the weights can check them.

Prints "listening on PORT". POST /fake {"faults": {NAME: COUNT, ...}, "hold_after": N} changes what
it does: a fault happens COUNT times (-1: always). GET /fake says what it was asked for. Faults:

  admits_during_pause  pause changes nothing            late_resume     resumes only 0.3 s later
  resume_fails         status 500                       pause_fails     status 500
  load_fails           status 500, but the label rises  not_applied     loads nothing, label rises
  half_applied         every other row is loaded        wrong_label     says another label
  default_label        keeps its label                  labels_default  labels tokens "default"
  no_labels            does not label tokens            wrong_logprobs  0.5 too low as sampled
  status_503           of a generation                  cut             half an answer, then closes
  truncated            half an answer, as if whole      slow_flush      refuses to flush
  too_many_tokens      one more than asked              hangs           never answers
  sleep_fails          status 500, nothing given back   wake_fails      status 500, nothing regained

Of OpenAI's routes and llama.cpp's:

  no_token_ids         says no token ids                no_logprobs     says none of what it samples
  adds_bos             reads one token more             strict          refuses what OpenAI does not have
  no_scores            of no prompt, in no way          biased_logprobs those after logit_bias
  loses_logprob        one less than tokens

GET /fake also says which memory it holds, and how many generations began while it lacked some (none, of whoever
drives it well: a real one would wait for ever, or end).
"""
import argparse
import asyncio
import copy
import json
import math
import os
import random

from fake_adapters import Adapters, add_flags
from fake_openai import llamacpp, openai
from fake_weights import Weights

END = 1


class Fake:
    def __init__(self, options):
        self.kind = options.kind
        self.vocabulary = options.vocabulary
        self.network = options.network
        self.weights = Weights(options.model, options.vocabulary, options.network)
        self.adapters = Adapters(self, options)
        self.label = "default"
        self.style = options.style
        self.requests = 0
        self.faults = dict.fromkeys(options.fault, -1)
        self.hold_after = options.hold_after
        self.token_seconds = options.token_seconds
        self.resumed = asyncio.Event()
        self.resumed.set()
        self.running = {}  # id -> Event that ends it
        self.memory = {"weights", "kv_cache"}
        self.begun_without_memory = 0
        self.begun = 0  # Responses, not what only checks it.
        self.sampling = 0
        self.calls = []
        self.random = random.Random(options.seed)

    def fault(self, name):
        left = self.faults.get(name, 0)
        if left > 0:
            self.faults[name] = left - 1
        return left != 0

    def held_at(self, made):
        return self.hold_after is not None and made >= self.hold_after

    # --- What it does

    async def generate(self, name, tokens, most, stops, adapter=None):
        """(tokens, log-probs, why it ended)"""
        if self.fault("hangs"):
            await asyncio.Event().wait()
        self.begun_without_memory += len(self.memory) < 2
        ended = self.running.setdefault(name, asyncio.Event())
        response = name.split("-")[0] not in ("check", "warm", "score")
        self.begun += response
        self.sampling += 1
        made, logprobs, ends = [], [], {END, *stops}
        most += 1 if self.fault("too_many_tokens") else 0
        shift = -0.5 if self.fault("wrong_logprobs") else 0.0
        try:
            while True:
                await self.resumed.wait()
                if ended.is_set():
                    return made, logprobs, "abort"
                if response and self.held_at(len(made)):
                    self.sampling -= 1
                    await ended.wait()
                    self.sampling += 1
                    return made, logprobs, "abort"
                # A table's row is the whole of what its last token says.
                context = [*tokens, *made]
                after = self.adapters.weights(adapter).after(context if self.network else context[-1:])[-1]
                chances = [math.exp(x) for x in after]
                if self.hold_after is not None:
                    for end in ends:  # What is to be held does not end before.
                        chances[end] = 0.0
                last = self.random.choices(range(len(chances)), chances)[0]
                made.append(last)
                logprobs.append(after[last] + shift)
                if last in ends:
                    return made, logprobs, "stop"
                if len(made) >= most:
                    return made, logprobs, "length"
                if self.token_seconds:
                    await asyncio.sleep(self.token_seconds)
        finally:
            self.sampling -= 1
            self.running.pop(name, None)

    def score(self, tokens, adapter=None):
        return [None] + [after[b] for after, b in zip(self.adapters.weights(adapter).after(tokens), tokens[1:])]

    def abort(self, names):
        for name in names if names else list(self.running):
            if name in self.running:
                self.running[name].set()
        if not self.resumed.is_set():
            self.wake_held()

    def pause(self):
        if self.fault("pause_fails"):
            return 500, {"error": "no"}
        if not self.fault("admits_during_pause"):
            self.resumed.clear()
            for ended in list(self.running.values()):
                ended.set()
            self.wake_held()
        return 200, {"status": "paused"}

    def wake_held(self):
        """Those that wait for the resume, to be told that they are ended."""
        self.resumed.set()
        asyncio.get_running_loop().call_soon(self.resumed.clear)

    def resume(self):
        if self.fault("resume_fails"):
            return 500, {"error": "no"}
        if self.fault("late_resume"):
            asyncio.get_running_loop().call_later(0.3, self.resumed.set)
        else:
            self.resumed.set()
        return 200, {"status": "resumed"}

    def release(self, *what):
        if self.fault("sleep_fails") or not self.memory.issuperset(what):
            return 500, {"error": "cannot sleep"}
        self.memory.difference_update(what)
        if "weights" in what:
            self.weights.forget()
        return 200, {}

    def regain(self, *what):
        if self.fault("wake_fails"):
            return 500, {"error": "cannot wake"}
        self.memory.update(what)
        return 200, {}

    def loaded(self, folder, before, base=None):
        """What a load gives in the place of `before`; None if it fails. `base`: the folder is an adapter of it."""
        if self.fault("load_fails") or "weights" not in self.memory:
            return None
        if self.fault("not_applied"):
            return before
        new = Weights(folder, self.vocabulary, self.network, base)
        if not self.fault("half_applied"):
            return new
        before = copy.deepcopy(before)
        before.half_of(new)
        return before

    def load(self, folder):
        """Whether it was done."""
        new = self.loaded(folder, self.weights)
        self.weights = new or self.weights
        return new is not None

    def set_label(self, label):
        if not self.fault("default_label"):
            self.label = label

    def said_label(self):
        return "v999-never" if self.fault("wrong_label") else self.label

    def token_label(self):
        return "default" if self.fault("labels_default") else self.label

    # --- Routes

    async def answer(self, method, path, body):
        path, _, query = path.partition("?")
        self.calls.append(path)
        if path == "/fake":
            return self.control(method, body)
        if path == "/health":
            return 200, ""
        if path == "/v1/models":
            return 200, {"data": [{"id": "policy"}]}
        if path == "/metrics":
            return 200, "# nothing\n"
        if path == "/openapi.json":
            return 404, {"detail": "not told"}
        if "generate" in path and "pause" not in path and self.fault("status_503"):
            return 503, {"error": "busy"}
        return await KINDS[self.kind](self, path, query, body)

    def control(self, method, body):
        if method == "GET":
            return 200, {"calls": self.calls, "running": len(self.running), "label": self.label,
                         "begun": self.begun, "sampling": self.sampling, "memory": sorted(self.memory),
                         "begun_without_memory": self.begun_without_memory, "adapters": list(self.adapters.loaded),
                         "paused": not self.resumed.is_set()}
        for key, value in body.items():
            setattr(self, key, value)
        if self.hold_after is None:
            self.abort([])  # What was held goes on elsewhere.
        return 200, {}

    async def vllm(self, path, query, body):
        if path == "/inference/v1/generate":
            return await self.vllm_generate(body)
        if path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            return self.adapters.vllm(path, body)
        if path == "/pause":
            return self.pause()
        if path == "/resume":
            return self.resume()
        if path == "/sleep":
            self.pause()
            return self.release("weights", "kv_cache")
        if path == "/wake_up":
            status, answer = self.regain(*([query.removeprefix("tags=")] if query else ["weights", "kv_cache"]))
            if len(self.memory) == 2:
                self.resumed.set()
            return status, answer
        if path == "/abort_requests":
            self.abort([name.removeprefix("generate-tokens-") for name in body["request_ids"]])
            return 200, {"status": "aborted"}
        if path == "/collective_rpc":
            if self.load(body["kwargs"]["weights_path"]):
                return 200, {"results": [None]}
            self.label = "raised-though-it-failed"
            return 500, {"error": "out of memory"}
        if path == "/reset_prefix_cache":
            return 200, ""
        if path == "/update_weight_version":
            self.set_label(body["new_version"])
            return 200, {"success": True}
        if path == "/weight_info":
            return 200, {"weight_version": self.said_label()}
        return 404, {"detail": "Not Found"}

    async def vllm_generate(self, body):
        sampling = body["sampling_params"]
        tokens = body["token_ids"]
        label = self.token_label()
        adapter = body["model"] if body.get("model", "policy") != "policy" else None
        if not self.adapters.has(adapter):
            return 404, {"error": f"no model {adapter}"}
        made, logprobs, why = await self.generate(
            body.get("request_id", "score"), tokens, sampling["max_tokens"],
            sampling.get("stop_token_ids", []), adapter)
        choice = {"index": 0, "finish_reason": why, "token_ids": made, "logprobs": None}
        if "logprobs" in sampling:
            content = [{"token_id": t, "logprob": p} for t, p in zip(made, logprobs)]
            choice["logprobs"] = {"content": content}
        if not self.fault("no_labels"):
            spans = [{"version": label, "start": 0, "end": len(made)}] if made else []
            choice["weight_versions"] = spans
        return 200, {"choices": [choice], "prompt_logprobs": self.prompt_logprobs(sampling, tokens, adapter)}

    async def sglang(self, path, _, body):
        if path == "/generate":
            return await self.sglang_generate(body)
        if path in ("/load_lora_adapter", "/unload_lora_adapter", "/server_info"):
            return self.adapters.sglang(path, body)
        if path == "/update_weight_version":
            self.set_label(body["new_version"])
            return 200, {"success": True, "message": "", "new_version": body["new_version"]}
        if path == "/pause_generation":
            return self.pause()
        if path == "/continue_generation":
            return self.resume()
        if path == "/abort_request":
            self.abort([] if body.get("abort_all") else [body["rid"]])
            return 200, {}
        if path == "/release_memory_occupation":
            return self.release(*body["tags"])
        if path == "/resume_memory_occupation":
            if self.memory.intersection(body["tags"]):  # It ends there.
                return 500, {"error": "nothing to resume"}
            return self.regain(*body["tags"])
        if path == "/flush_cache":
            return (400, {"error": "busy"}) if self.fault("slow_flush") else (200, {})
        if path == "/update_weights_from_disk":
            if not self.load(body["model_path"]):
                self.label = body["weight_version"]
                return 200, {"success": False, "message": "out of memory"}
            self.set_label(body["weight_version"])
            return 200, {"success": True, "message": ""}
        if path == "/model_info":
            return 200, {"weight_version": self.said_label()}
        return 404, {"detail": "Not Found"}

    def prompt_logprobs(self, wanted, tokens, adapter=None):
        if wanted.get("prompt_logprobs") is None:
            return None
        return [None if p is None else {str(t): {"logprob": p}} for t, p in zip(tokens, self.score(tokens, adapter))]

    async def sglang_generate(self, body):
        sampling, tokens = body["sampling_params"], body["input_ids"]
        label = self.token_label()
        adapter = body.get("lora_path")
        if not self.adapters.has(adapter):
            return 400, {"error": {"message": f"The following requested LoRA adapters are not loaded: {adapter}"}}
        made, logprobs, why = await self.generate(
            body.get("rid", "score"), tokens, sampling["max_new_tokens"],
            sampling.get("stop_token_ids", []), adapter)
        meta = {"finish_reason": {"type": why},
                "output_token_logprobs": [[p, t, None] for t, p in zip(made, logprobs)]}
        if not self.fault("no_labels"):
            spans = [{"version": label, "start": 0, "end": len(made)}] if made else []
            meta.update(weight_version=label, weight_versions=spans)
        if body.get("logprob_start_len") is not None:
            meta["input_token_logprobs"] = [
                [p, t, None] for t, p in zip(tokens, self.score(tokens, adapter))]
        return 200, {"text": "", "meta_info": meta}

    # --- HTTP

    async def serve(self, reader, writer):
        try:
            while True:
                line = await reader.readline()
                if not line:
                    break
                method, path, _ = line.decode().split(" ", 2)
                length = 0
                while (header := (await reader.readline()).decode().strip()):
                    name, value = header.split(":", 1)
                    if name.lower() == "content-length":
                        length = int(value)
                text = await reader.readexactly(length) if length else b""
                body = json.loads(text) if text else {}
                status, answer = await self.answer(method, path, body)
                whole = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                sent = whole
                generation = path.endswith(("generate", "/v1/completions", "/completion"))
                cut = generation and self.fault("cut")
                if generation and self.fault("truncated"):
                    sent = whole = whole[: len(whole) // 2]
                if cut:
                    sent = whole[: len(whole) // 2]
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(whole)}\r\n"
                             "Content-Type: application/json\r\n\r\n".encode() + sent)
                await writer.drain()
                if cut:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


# Kind -> what answers its requests.
KINDS = {"vllm": Fake.vllm, "sglang": Fake.sglang, "openai": openai, "llamacpp": llamacpp}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=list(KINDS), default="vllm")
    parser.add_argument("--style", choices=["prompt_logprobs", "echo", "logit_bias"], default="prompt_logprobs")
    parser.add_argument("--fault", action="append", default=[], help="has it always, from the beginning")
    parser.add_argument("--model", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--vocabulary", type=int, default=12)
    parser.add_argument("--network", action="store_true", help="the policy of the folder, not a table (needs numpy)")
    parser.add_argument("--hold-after", type=int, dest="hold_after")
    parser.add_argument("--token-seconds", type=float, default=0.0, dest="token_seconds")
    parser.add_argument("--seed", type=int, default=0)
    add_flags(parser)
    options = parser.parse_args()
    fake = Fake(options)
    server = await asyncio.start_server(fake.serve, options.host, options.port, backlog=4096)
    print("listening on", server.sockets[0].getsockname()[1], "as", os.getpid(), flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
