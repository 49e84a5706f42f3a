"""``python -m temper.trackio RUN``: sends the metrics of a run to trackio, which stores them locally."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import tracking


def main(argv: list[str] | None = None) -> int:
    args = tracking.arguments("trackio", argv)
    try:
        trackio: Any = importlib.import_module("trackio")
    except ImportError:
        return tracking.missing("trackio")
    run = args.run.resolve()
    position = tracking.Position.load(run, "trackio")
    position.run_id = position.run_id or args.name or run.name
    trackio.init(
        project=args.project,
        name=position.run_id,
        resume="allow",
        config={"run": str(run)},
    )
    for line in tracking.lines(run, position, follow=not args.once):
        trackio.log(
            tracking.with_aliases(tracking.flatten(line), args.aliases), step=int(line["step"])
        )
        position.save()
    trackio.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
