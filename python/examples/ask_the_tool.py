"""An agent with a tool: the policy must ask the tool for the second summand.

The prompt is "3+". A turn that ends with "=" calls the tool, which returns a random digit, as in "4=". The next turn is the
answer: "3+" "=" "4=" "7" has reward 1. A call of the tool has reward 0.2 even if the answer is wrong; without a call, an
answer can be right only by chance. A nearly right answer has a small reward, so that the policy gets a gradient.
"""
import random

import temper.agent


async def play(episode):
    first = int(episode.prompt[0])
    second = random.randrange(5)
    asked = 0
    for _ in range(3):
        turn = await episode.turn(stop=["="])
        if turn.text or turn.finish != "stop" or turn.tokens[-1] == END:
            break
        asked += 1
        episode.count("tool_calls")
        episode.give(f"{second}=")
    said = turn.text
    right = asked > 0 and said == str(first + second)
    episode.count("right", right)
    near = max(0.0, 1 - abs(int(said) - first - second) / 4) if len(said) == 1 and said.isdigit() else 0.0
    return (0.2 if asked == 1 else 0.0) + (0.8 if right else 0.4 * near if asked else 0.0)


END = 1  # the token that ends a response

if __name__ == "__main__":
    temper.agent.run(play)
