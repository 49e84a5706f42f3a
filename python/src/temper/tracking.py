"""What side-cars of a run have in common: they follow ``metrics.jsonl``, from where they stopped.

A side-car is a program of its own, so that a tracker that hangs or needs the network never holds up
the run. It may be stopped and started at any time; where it stands is kept in ``RUN/tracking/``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_NAMES = Path(__file__).with_name("metric_names.json")
_BUSY = ("train", "decode", "prefill", "reference", "reward")

Metrics = dict[str, float]


def flatten(line: dict[str, Any]) -> Metrics:
    """Every number of a line of metrics.jsonl by its path: ``tokens_per_s/raw``. With ``busy`` and
    ``waiting``, the sums over states; without what is no finite number."""
    flat: Metrics = {}

    def add(value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key, element in value.items():
                add(element, f"{name}/{key}" if name else key)
        elif isinstance(value, (int, float)) and math.isfinite(value):
            flat[name] = float(value)

    add(line, "")
    states = line.get("states")
    if isinstance(states, dict):
        flat["busy"] = sum(states.get(state, 0.0) for state in _BUSY)
        flat["waiting"] = sum(share for state, share in states.items() if state.startswith("wait-"))
    return flat


def with_aliases(flat: Metrics, tables: list[str]) -> Metrics:
    """The same, and behind it the names of ``trl``, ``verl`` or ``prime-rl`` for what means the
    same there. Raises ValueError for another name."""
    out = dict(flat)
    names = json.loads(_NAMES.read_text())
    for table in tables:
        if table not in ("trl", "verl", "prime-rl"):
            raise ValueError(f"no alias table {table!r}; there are trl, verl and prime-rl")
        for name in names:
            if name["name"] in flat:
                for alias in name[table].split():
                    out.setdefault(alias, flat[name["name"]])
    return out


@dataclass
class Position:
    """How far a side-car is, kept in a file of its own."""

    path: Path
    offset: int = 0
    run_id: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def load(run: Path, tracker: str) -> Position:
        path = run / "tracking" / f"{tracker}.json"
        position = Position(path)
        if path.exists():
            kept = json.loads(path.read_text())
            position.offset, position.run_id = int(kept["offset"]), str(kept["run_id"])
        return position

    def save(self) -> None:
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"offset": self.offset, "run_id": self.run_id}))
        os.replace(fresh, self.path)


def is_over(run: Path) -> bool:
    """Whether the run has ended, by its own word or because its process is gone."""
    try:
        live = json.loads((run / "live.json").read_text())
    except (OSError, ValueError):
        return (run / "summary.json").exists()
    if live.get("over"):
        return True
    if live.get("host") != os.uname().nodename:
        return False
    try:
        os.kill(int(live["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def lines(
    run: Path,
    position: Position,
    follow: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[dict[str, Any]]:
    """The lines from ``position`` on, which moves on with each. ``follow``: until the run is over.
    A line that is not whole yet is waited for."""
    path = run / "metrics.jsonl"
    while True:
        over = not follow or is_over(run)  # before reading: what comes later is read next time
        if path.exists() and path.stat().st_size > position.offset:
            with path.open("rb") as file:
                file.seek(position.offset)
                for raw in file:
                    if not raw.endswith(b"\n"):
                        break
                    position.offset += len(raw)
                    yield json.loads(raw)
        if over:
            return
        sleep(1.0)


def arguments(tracker: str, argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m temper.{tracker}",
        description=f"Sends the metrics of a run to {tracker}, while it goes on and afterwards. "
        "It may be stopped and started again: it goes on where it was.",
    )
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--project", default="temper")
    parser.add_argument("--name", help="of the run there; otherwise that of the folder")
    parser.add_argument("--once", action="store_true", help="send what there is and end")
    parser.add_argument("--offline", action="store_true", help="keep it here, to be sent later")
    parser.add_argument(
        "--aliases",
        default="",
        help="write the names of these systems as well: trl, verl, prime-rl",
    )
    args = parser.parse_args(argv)
    if not (args.run / "config.yaml").exists():
        parser.exit(1, f"temper.{tracker}: {args.run} holds no run\n")
    args.aliases = [name for name in args.aliases.split(",") if name]
    try:
        with_aliases({}, args.aliases)
    except ValueError as error:
        parser.exit(1, f"temper.{tracker}: {error}\n")
    return args


def missing(tracker: str) -> int:
    print(f"temper.{tracker}: {tracker} is not installed: pip install {tracker}", file=sys.stderr)
    return 1


def summary_of(run: Path) -> Metrics:
    """The figures of summary.json, once the run has ended; without what is per card."""
    try:
        summary = json.loads((run / "summary.json").read_text())
    except (OSError, ValueError):
        return {}
    summary.get("utilization", {}).pop("per_card", None)
    summary["utilization"] = {"busy": summary.get("utilization", {}).get("busy", 0.0)}
    return flatten({key: value for key, value in summary.items() if key != "log_hash"})
