"""The same requests from Python: a plain asyncio client over aiohttp. Prints one JSON line.

    servers_client.py URL REQUESTS IN_FLIGHT PROMPT_TOKENS
"""
import asyncio
import json
import resource
import sys
import time

import aiohttp


async def main(url, requests, in_flight, prompt):
    left = iter(range(requests))
    tokens = 0

    async def worker(session):
        nonlocal tokens
        for i in left:
            body = {"request_id": f"r-{i}", "model": "policy", "token_ids": prompt, "cache_salt": "v1",
                    "sampling_params": {"n": 1, "max_tokens": 4096, "temperature": 1.0, "top_p": 1.0,
                                        "stop_token_ids": [1], "logprobs": 0}, "stream": False}
            async with session.post(url + "/inference/v1/generate", json=body) as answer:
                choice = (await answer.json())["choices"][0]
            ids = choice["token_ids"]
            logprobs = [entry["logprob"] for entry in choice["logprobs"]["content"]]
            assert len(ids) == len(logprobs)
            tokens += len(ids)

    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.monotonic()
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(worker(session) for _ in range(in_flight)))
    wall = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"tokens": tokens, "wall": wall, "cpu": cpu, "peak_kib": used.ru_maxrss}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), list(range(2, 2 + int(sys.argv[4])))))
