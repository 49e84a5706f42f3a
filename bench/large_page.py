"""Measures the dashboard with a long run on many cards: generates the run folder of 100,000 updates on 1,536 cards,
serves it, opens it in Chromium, and drags its time line for 120 frames.

    ./x bench large_page [UPDATES [ACTORS [TIMES]]]

Prints for each repetition the time until the time line is drawn, the frames per second of the drag, and the memory
of the server. Needs Chromium, and npm for puppeteer-core and axe-core (or PAGE_MODULES, a folder that has them)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "python/src/temper/metric_names.json"
DRIVER = ROOT / "tests/integration/page/drive.mjs"

STATES = ("decode", "wait-data", "wait-quota", "weight-sync")


def make_run(folder: Path, updates: int, actors: int) -> None:
    rng = random.Random(1)
    (folder / "timeline").mkdir(parents=True)
    (folder / "config.yaml").write_text("name: large\n")
    (folder / "events.log").write_text("")
    step_s = 30.0
    # The sums over states are not in the file.
    names = [row["name"] for row in json.loads(TABLE.read_text()) if row["name"] not in ("states/*", "busy", "waiting")]
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(1, updates + 1):
            line = {"step": step, "time": step * step_s, "states": {state: 0.25 for state in STATES}}
            for name in names:
                *outer, key = name.split("/")
                (line.setdefault(outer[0], {}) if outer else line).setdefault(key, rng.random())
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    wall = updates * step_s
    for level in range(8):
        width = 0.001 * 8**level
        first = max(0.0, wall - 4_000_000 / actors * width * 8)  # what the budget leaves of a fine level
        begin, end = int(first / width), int(wall / width)
        lines = 64
        with (folder / f"timeline/{level}.jsonl").open("w") as file:
            for block in range(lines):
                a = begin + (end - begin) * block // lines
                b = begin + (end - begin) * (block + 1) // lines
                if a == b:
                    continue
                tracks = []
                for actor in range(actors):
                    track, at = [actor, a], a
                    while at < b:
                        n = min(b - at, max(1, int(rng.expovariate(1) * (b - a) / 2)))
                        track += [n, rng.randrange(len(STATES))]
                        at += n
                    tracks.append(track)
                names = [[s, "group N (v0 N)" if s == "wait-data" else ""] for s in STATES]
                file.write(json.dumps({"b": a, "e": b, "names": names, "t": tracks}, separators=(",", ":")) + "\n")
    shares = {"decode": 0.7, "wait-data": 0.2, "idle": 0.1}
    live = {
        "subtitle": f"separate, {actors} cards, staleness bound 2", "pid": 1, "host": "", "began": 0, "updated": 0, "over": True,
        "placement": "separate", "steps": updates, "updates": updates, "elapsed_s": wall, "rewards": [0.5],
        "actors": [{"name": f"rollout-{i}", "role": "rollout", "state": "idle", "on": "", "load": 0, "capacity": 64, "restarts": 0} for i in range(actors)],
        "cards": [{"cards": [i, 1], "actors": [i], "recent": shares, "whole": shares} for i in range(actors)],
        "summary": {"ok": True, "name": "large", "steps": updates, "wall_s": wall, "cards": actors, "simulated": True,
                    "utilization": {"busy": 0.7, "states": shares}, "staleness": {"bound": 2, "max": 2, "histogram": {"0": 10, "1": 20, "2": 70}}},
    }  # fmt: skip
    (folder / "live.json").write_text(json.dumps(live))


def modules(folder: Path) -> str:
    if kept := os.environ.get("PAGE_MODULES"):
        return kept
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "puppeteer-core", "axe-core"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return str(folder)


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def main(updates: int = 100_000, actors: int = 1536, times: int = 5) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder / "large", updates, actors)
        found = {**os.environ, "PAGE_MODULES": modules(folder), "PAGE_RUNS": "large", "PAGE_PAN": "large"}
        server = subprocess.Popen([os.environ["TEMPER"], "serve", str(folder), "--address", "0"],
                                  stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert server.stdout
        url = server.stdout.readline().split()[2]
        print("opened in   frames/s   slowest 5 % of frames from   server")
        try:
            for _ in range(times):
                done = subprocess.run(["node", str(DRIVER), url, str(folder / "shots"), "1440", "light"], env=found,
                                      check=True, stdout=subprocess.PIPE, text=True)  # fmt: skip
                pan = json.loads(done.stdout.splitlines()[-1])["pan"]
                print(f"{pan['opened_ms']:6.0f} ms   {pan['frames_per_s']:8.1f}   {pan['p95_ms']:24.0f} ms   "
                      f"{resident_mb(server.pid):5.0f} MB", flush=True)  # fmt: skip
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
