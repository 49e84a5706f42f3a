"""Figures of docs/reports/new-user.md. `./x figures` runs these functions (docs/figures.py)."""
import json
import random

from figures_recipe import figures

ROWS = 200


def words(length, letters, draw):
    return "".join(draw.choice(letters) for _ in range(length))


def distinct(make):
    """So many different results of make(), in the order in which they were made."""
    found = {}
    while len(found) < ROWS:
        found[make()] = None
    return list(found)


def tasks():
    """{name: problems as (prompt, answer)}."""
    draw = random.Random(11)
    mixed = distinct(lambda: words(6, "ab", draw) + words(2, "cd", draw))
    short = distinct(lambda: words(4, "abcdefghij", draw))
    few = distinct(lambda: words(4, "abcdef", draw))
    numbers = distinct(lambda: draw.randrange(1000))
    pairs = distinct(lambda: (draw.randrange(30), draw.randrange(30)))
    large = distinct(lambda: (draw.randrange(100), draw.randrange(100)))
    return {
        "reverse 8 letters": [(f"reverse {w}: ", w[::-1]) for w in mixed],
        "copy 4 letters": [(f"copy {w}: ", w) for w in short],
        "odd or even": [(f"{n} is ", "odd" if n % 2 else "even") for n in numbers],
        "last of 4 letters": [(f"last of {w}: ", w[-1]) for w in few],
        "sums to 9 + 19": [(f"{a}+{b}=", str(a + b)) for a in range(10) for b in range(20)],
        "sums to 29 + 29": [(f"{a}+{b}=", str(a + b)) for a, b in pairs],
        "larger of two": [(f"max {a} {b} = ", str(max(a, b))) for a, b in large],
    }


@figures("measured", "slow")
def init_learns(fig):
    fig.head("task", "example", "before", "best", "rise", align="llrrr")
    for number, (name, problems) in enumerate(tasks().items()):
        file = f"problems_{number}.jsonl"
        (fig.program.scratch / file).write_text(
            "".join(json.dumps({"prompt": prompt, "answer": answer}) + "\n" for prompt, answer in problems))
        made = f"temper init {{out}}/task.yaml --task {file}"
        config = fig.path(made, "task.yaml")
        before, best = [], []
        for seed in (1, 2, 3):
            points = fig.json(f"temper run {config} --set seed={seed} --set run_dir={{out}}/run --json").evaluation.points
            before.append(points[0].pass_1)
            best.append(max(p.pass_1 for p in points[1:]))
        if name == "reverse 8 letters":
            fig.holds(all(b - a >= 0.15 for a, b in zip(before, best)), "it rises by at least 0.15 with each seed")
        fig.row(name, f"`{problems[0][0]}`", ", ".join(f"{x:.2f}" for x in before), ", ".join(f"{x:.2f}" for x in best),
                ", ".join(f"{b - a:+.2f}" for a, b in zip(before, best)))
