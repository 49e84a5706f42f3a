"""An agent whose tool takes long: for trying what tools cost, and what a bound hides of it.

An episode has four turns of four tokens, and after each but the last a call whose latency is drawn from a file, a JSON
array of milliseconds. The configuration describes the same turns and latencies to forecasts (simulation.tools). A token
with an even number is right, so that the policy has something to learn.
"""
import asyncio
import json
import random
import sys

import temper.agent

TURNS, TOKENS = 4, 4


async def play(episode):
    tokens = []
    for turn in range(1, TURNS + 1):
        while len(tokens) < turn * TOKENS:  # An end token does not end a turn here.
            tokens += (await episode.turn(max_tokens=turn * TOKENS - len(tokens))).tokens
        if turn < TURNS:
            await asyncio.sleep(random.choice(MILLISECONDS) / 1000)
            episode.give("1=")
    return sum(token % 2 == 0 for token in tokens) / len(tokens)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        MILLISECONDS = json.load(file)
    temper.agent.run(play)
