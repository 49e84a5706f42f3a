"""Common parts of the sidecars that send a run's metrics to an experiment tracker.

A sidecar follows ``metrics.jsonl``. It is a separate program, so that a tracker that hangs or needs the
network cannot delay the run. It can be stopped and restarted at any time; ``RUN/tracking/`` has its
position.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAMES = Path(__file__).with_name("metric_names.json")
_BUSY = ("train", "decode", "prefill", "reference", "reward")

Metrics = dict[str, float]


def flatten(line: dict[str, Any]) -> Metrics:
    """Flattens a line of metrics.jsonl.

    Args:
        line: The parsed line.

    Returns:
        Every finite number by its path, such as ``tokens_per_s/raw``, and ``busy`` and ``waiting``, the
        sums over states.
    """
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
    """Adds aliases: the names of equivalent metrics in other systems.

    Args:
        flat: Metrics by name.
        tables: Any of ``trl``, ``verl`` and ``prime-rl``.

    Returns:
        A copy of `flat` with the aliases.

    Raises:
        ValueError: An unknown table.
    """
    out = dict(flat)
    names = json.loads(_NAMES.read_text())
    for table in tables:
        if table not in ("trl", "verl", "prime-rl"):
            raise ValueError(f"aliases: expected trl, verl or prime-rl, found {table!r}")
        for name in names:
            if name["name"] in flat:
                for alias in name[table].split():
                    out.setdefault(alias, flat[name["name"]])
    return out


@dataclass
class Position:
    """The position of a sidecar in metrics.jsonl, stored in a file."""

    path: Path
    offset: int = 0
    run_id: str = ""

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
    """Whether the run has ended: it has a final record, or its process is gone."""
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
    """Yields lines of metrics.jsonl from ``position`` on and advances it.

    Args:
        run: Run folder.
        position: Position in the file.
        follow: Continue until the run is over; an incomplete line is waited for.
        sleep: Waits for the given number of seconds.
    """
    path = run / "metrics.jsonl"
    while True:
        over = not follow or is_over(run)  # checked before reading, so that no line is missed
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
        description=f"Sends the metrics of a running or finished run to {tracker}. It can be stopped "
        "and restarted: it continues at its last position.",
    )
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--project", default="temper", help="project there (default: temper)")
    parser.add_argument("--name", help="name of the run there (default: that of the folder)")
    parser.add_argument("--once", action="store_true", help="send the current metrics and exit")
    parser.add_argument("--offline", action="store_true", help="store the metrics locally, to be sent later")
    parser.add_argument(
        "--aliases",
        default="",
        help="also send metrics under the names of these systems, comma-separated: trl, verl, prime-rl",
    )
    args = parser.parse_args(argv)
    if not (args.run / "config.yaml").exists():
        parser.exit(1, f"temper.{tracker}: {args.run} holds no run (no config.yaml)\n")
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
    """The figures of summary.json without those per card; empty before the run has ended."""
    try:
        summary = json.loads((run / "summary.json").read_text())
    except (OSError, ValueError):
        return {}
    summary.get("utilization", {}).pop("per_card", None)
    summary["utilization"] = {"busy": summary.get("utilization", {}).get("busy", 0.0)}
    return flatten({key: value for key, value in summary.items() if key != "log_hash"})
