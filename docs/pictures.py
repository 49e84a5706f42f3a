#!/usr/bin/env python3
"""Draws the pictures of docs/explanation/ into docs/images/, from simulated runs and from the rules.

    docs/pictures.py [NAME...]     processes, staleness-rule, card-states (default: all)
    docs/pictures.py --check       change nothing; exit 1 if a picture differs

Simulated runs are equal on every machine, and so are the pictures. TEMPER=FILE chooses the program.
Colors follow prefers-color-scheme.
"""
import gzip
import html
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 960

# As in the terminal and on the page: work is colored, waits are pale, a card without an actor is empty.
STATES = {
    "train": ("#2563a8", "#6aa5e3"), "decode": ("#2e7d46", "#5fbf7f"), "prefill": ("#7aa63a", "#a5cf6b"),
    "reference": ("#b26a00", "#e0a040"), "reward": ("#8a4fb5", "#b98be0"), "weight-sync": ("#c2410c", "#f28c5a"),
    "switch": ("#c0266b", "#f06ba8"), "wait-data": ("#f1d9a8", "#5c4a26"), "wait-weights": ("#f0c4b4", "#5e3a2d"),
    "wait-quota": ("#e8c1c8", "#5c333c"), "wait-tools": ("#cfd3ea", "#3a3f5e"), "idle": ("#dcdfe4", "#3a3f47"), "down": ("#ffffff", "#16181d"),
}
STYLE = """<style>
 text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 13px; fill: #1d2127 } .small { font-size: 11px }
 .head { font-weight: 600 } .back { fill: #ffffff } .line { stroke: #8a919c; fill: none }
 .box { fill: #eef3f9; stroke: #7d93ad } .file { fill: #f6f2e6; stroke: #b09d6a } .on { fill: #ffffff }
%s @media (prefers-color-scheme: dark) {
 text { fill: #d9dee5 } .back { fill: #16181d } .line { stroke: #7d8590 } .box { fill: #1f2a38; stroke: #54708f }
 .file { fill: #2b2718; stroke: #8a7a45 } .on { fill: #16181d }
%s }
</style>"""


def svg(height, body, colors=()):
    light = "".join(f" .{name} {{ fill: {a} }}\n" for name, (a, _) in colors)
    dark = "".join(f" .{name} {{ fill: {b} }}\n" for name, (_, b) in colors)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
            + STYLE % (light, dark) + f'\n<rect class="back" width="{WIDTH}" height="{height}"/>\n' + "\n".join(body) + "\n</svg>\n")


def text(x, y, words, kind="", anchor=""):
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{anchor}>{html.escape(words)}</text>'


def rectangle(x, y, width, height, kind, radius=0):
    radius = f' rx="{radius}"' if radius else ""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{radius}/>'


def temper(*words):
    program = os.environ.get("TEMPER", str(ROOT / "build/release/bin/temper"))
    result = subprocess.run([program, *words], text=True, capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"pictures.py: exit {result.returncode} of temper {' '.join(words)}\n{result.stderr[-1000:]}")
    return result.stdout


def simulated(folder, config, *sets):
    words = ["run", str(ROOT / "configs" / config), "--driver", "in-process", "--plain", "--set", f"run_dir={folder}"]
    for one in sets:
        words += ["--set", one]
    temper(*words)
    return folder


# ---------------------------------------------------------------------------------- the staleness rule
GROUPS = [(f"v{v}", pair) for v, pair in enumerate([("#2563a8", "#6aa5e3"), ("#2e7d46", "#5fbf7f"), ("#b26a00", "#e0a040"),
                                                   ("#8a4fb5", "#b98be0"), ("#c0266b", "#f06ba8"), ("#4b5563", "#9aa3ae")])]


def staleness_rule(scratch):
    """Groups of a run with bound 2 and four groups per step: from dispatch to the end of their step."""
    run = simulated(scratch / "rule", "cm384_pangu.yaml", "steps=6", "algorithm.groups_per_update=4", "staleness.bound=2")
    began, version, ended, ages, steps = {}, {}, {}, {}, [0]
    for line in temper("events", str(run)).splitlines():
        record = json.loads(line)
        for command in record["commands"]:
            if "dispatch" in command and command["dispatch"]["group"] not in began:
                group = command["dispatch"]["group"]
                began[group], version[group] = record["time"], command["dispatch"]["version"]
        if "trained" in record["event"]:
            trained = record["event"]["trained"]
            steps.append(record["time"])
            for group in trained["groups"]:
                ended[group], ages[group] = record["time"], trained["version"] - 1 - version[group]
    left, top, row = 60, 78, 15
    scale = (WIDTH - left - 20) / steps[-1]
    order = sorted(ended, key=lambda g: (began[g], ended[g], g))
    body = [text(left, 22, "Groups of a run with staleness bound 2: dispatch to the end of the step that trains them", "head"),
            text(left, 42, "Color: the version at dispatch. Number: the age when trained, at most 2. Four groups per step.")]
    bottom = top + row * len(order)
    for step, at in enumerate(steps):
        x = left + at * scale
        body.append(f'<path class="line" stroke-dasharray="3 3" d="M{x:.1f} {top - 8}V{bottom}"/>')
        body.append(text(x, top - 14, f"v{step}", "small", "middle" if 0 < step < len(steps) - 1 else "end" if step else "start"))
    for index, group in enumerate(order):
        y = top + row * index
        x, end = left + began[group] * scale, left + ended[group] * scale
        body.append(rectangle(round(x, 1), y + 2, round(end - x, 1), row - 4, f"v{version[group]}", 2))
        body.append(text(end - 5, y + 12, str(ages[group]), "small on", "end"))
        body.append(text(left - 8, y + 12, f"group {group}", "small", "end"))
    body.append(text(left, bottom + 24, f"Simulated time, {steps[-1] / 60:.0f} minutes: six steps of Pangu Ultra MoE 718B on 384 cards. "
                                        "A dashed line is a new version.", "small"))
    return svg(bottom + 36, body, GROUPS)


# ---------------------------------------------------------------------------------- states of cards
def states_of(run):
    """{cards: [state of each pixel]} and the seconds of a run, from its trace."""
    trace = json.loads(gzip.decompress((run / "trace.json.gz").read_bytes()))
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == 2}
    slices = [(e["tid"], e["name"].split(":")[0].split(" ")[0], e["ts"], e["ts"] + e["dur"]) for e in events
              if e["ph"] == "X" and e["pid"] == 2]
    return names, slices, max(s[3] for s in slices)


def card_states(scratch):
    """Separate, co-located and fused runs of the same work, on the same time axis."""
    lists = (f"placement.rollout=[{','.join(map(str, range(352)))}]", f"placement.trainer=[{','.join(map(str, range(352)))}]",
             f"placement.reference=[{','.join(map(str, range(352, 384)))}]")
    batch = "algorithm.groups_per_update=512"  # of cm384_pangu.yaml
    runs = [("separate", "exclusive cards", simulated(scratch / "separate", "cm384_pangu.yaml", "steps=6")),
            ("colocated", "rollout and trainer time-share 352 cards",
             simulated(scratch / "colocated", "cm384_pangu_fused.yaml", "steps=6", batch, "placement.mode=colocated", *lists,
                       "rollout.replicas=11", "simulation.trainer.ep=8")),
            ("fused", "all roles time-share all cards", simulated(scratch / "fused", "cm384_pangu_fused.yaml", "steps=6", batch))]
    read = {mode: states_of(run) for mode, _, run in runs}
    longest = max(end for _, _, end in read.values())
    left, wide, row = 150, WIDTH - 170, 17
    body = [text(20, 24, "Card states of three placements: six steps of the same work on 384 simulated cards, bound 2", "head")]
    y, used = 44, set()
    for mode, words, run in runs:
        names, slices, end = read[mode]
        summary = json.loads((run / "summary.json").read_text())
        speed = summary["tokens"]["trained_per_s"] / 1e3
        body.append(text(20, y + 12, f"{mode}: {words}", "head"))
        body.append(text(WIDTH - 20, y + 12, f"{speed:.1f}k trained tokens/s, {end / 1e6 / 3600:.1f} h", "small", "end"))
        y += 20
        for tid in sorted(names):
            label = names[tid].split(": ", 1)
            who = "all roles" if mode == "fused" else "both roles" if ", trainer" in names[tid] else label[1] if len(label) > 1 else ""
            body.append(text(left - 8, y + 12, f"{label[0].replace('cards ', '')} {who}"[:26], "small", "end"))
            pixels = [{} for _ in range(wide)]
            for slice_tid, state, begin, stop in slices:
                if slice_tid != tid or state not in STATES:
                    continue
                first, last = begin / longest * wide, stop / longest * wide
                for pixel in range(int(first), min(wide, int(last) + 1)):
                    share = min(last, pixel + 1) - max(first, pixel)
                    pixels[pixel][state] = pixels[pixel].get(state, 0) + share
            shown = [max(sorted(p), key=p.get) if p and sum(p.values()) > 0.01 else None for p in pixels]
            at = 0
            while at < wide:
                to = at
                while to < wide and shown[to] == shown[at]:
                    to += 1
                if shown[at]:
                    used.add(shown[at])
                    body.append(rectangle(left + at, y + 2, to - at, row - 3, shown[at]))
                at = to
            y += row
        y += 12
    x = 20
    for state in [s for s in STATES if s in used]:
        body.append(rectangle(x, y + 3, 12, 12, state))
        body.append(text(x + 17, y + 13, state, "small"))
        x += 34 + 6.4 * len(state)
    return svg(y + 28, body, list(STATES.items()))


# ---------------------------------------------------------------------------------- processes and data
def processes(_):
    """Processes of a run, and what travels between them."""
    body = [text(20, 26, "Processes of a run and the data between them", "head")]

    def box(x, y, width, height, title, *lines, kind="box"):
        body.append(rectangle(x, y, width, height, kind, 6))
        body.append(text(x + 12, y + 20, title, "head"))
        body.extend(text(x + 12, y + 38 + 16 * i, line, "small") for i, line in enumerate(lines))

    def arrow(x1, y1, x2, y2, words, dx=0, dy=-6, anchor="middle", both=False):
        start = ' marker-start="url(#tip)"' if both else ""
        body.append(f'<path class="line" marker-end="url(#tip)"{start} d="M{x1} {y1}L{x2} {y2}"/>')
        if words:
            body.append(text((x1 + x2) / 2 + dx, (y1 + y2) / 2 + dy, words, "small", anchor))

    body.append('<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto-start-reverse"><path class="line" d="M0 0L8 4L0 8"/></marker></defs>')
    box(310, 90, 340, 160, "temper (orchestrator)", "scheduler: staleness rule, queue, leases, role switch",
        "payload store: tokens and log-probabilities", "event log, metrics, certificates",
        "supervisor: starts, restarts, deadlines", "driver: wall clock, or virtual time in a simulation")
    box(20, 90, 200, 92, "rollout-0, rollout-1, ...", "temper-worker: prompts in,", "tokens, log-probs and", "versions out")
    box(20, 198, 200, 52, "inference server", "vLLM, SGLang, llama.cpp, ...")
    box(20, 290, 200, 76, "reference-0, ...", "temper-worker: tokens in,", "reference log-probs out")
    box(740, 90, 200, 92, "trainer", "temper-worker: batch and", "certificate in, weights out;", "saves checkpoints")
    box(740, 290, 200, 76, "reward-0, ...", "temper-worker: responses in,", "rewards out")
    box(740, 382, 200, 52, "verifier processes", "your command or function")
    box(310, 340, 340, 92, "run folder", "config.yaml  events.log  checkpoints/  best/",
        "metrics.jsonl  certificates.jsonl  samples.jsonl", "summary.json  trace.json.gz  live.json", kind="file")
    box(310, 470, 340, 52, "page, report, audit, replay, metrics", "read only the run folder")
    for x1, y1, x2, y2 in ((308, 136, 222, 136), (652, 136, 738, 136), (308, 230, 222, 316), (652, 230, 738, 316),
                           (840, 366, 840, 380), (120, 182, 120, 196)):
        arrow(x1, y1, x2, y2, "", both=True)
    body.append(text(265, 128, "ZeroMQ", "small", "middle"))
    body.append(text(695, 128, "ZeroMQ", "small", "middle"))
    arrow(480, 250, 480, 338, "every event and command", 8, 4, "start")
    arrow(480, 432, 480, 468, "")
    body.append('<path class="line" stroke-dasharray="5 4" marker-end="url(#tip)" d="M840 88V62H120V86"/>')
    body.append(text(480, 56, "new weights: shared memory on one machine, relayed from engine to engine between machines", "small", "middle"))
    return svg(540, body)


PICTURES = {"processes": processes, "staleness-rule": staleness_rule, "card-states": card_states}


def main():
    words = sys.argv[1:]
    check = "--check" in words
    bad = []
    with tempfile.TemporaryDirectory(prefix="temper-pictures-") as scratch:
        for name in [w for w in words if w != "--check"] or PICTURES:
            made = PICTURES[name](pathlib.Path(scratch))
            path = ROOT / "docs/images" / f"{name}.svg"
            if not check:
                path.write_text(made)
            elif not path.exists() or path.read_text() != made:
                bad.append(f"docs/images/{name}.svg is stale: `docs/pictures.py {name}` draws it")
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
