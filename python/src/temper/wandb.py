"""``python -m temper.wandb RUN``: sends the metrics of a run to Weights & Biases.

Works offline, too (``--offline`` or ``WANDB_MODE=offline``; send the data later with ``wandb sync``).
The step is a separate metric, so that a run that rolled back to a checkpoint is shown correctly.
"""

from __future__ import annotations

import importlib
import secrets
import sys
from typing import Any

from . import tracking


def main(argv: list[str] | None = None) -> int:
    args = tracking.arguments("wandb", argv)
    try:
        wandb: Any = importlib.import_module("wandb")
    except ImportError:
        return tracking.missing("wandb")
    run = args.run.resolve()
    position = tracking.Position.load(run, "wandb")
    if not position.run_id:
        position.run_id = secrets.token_hex(4)
        position.save()
    folder = run / "tracking"
    session = wandb.init(
        project=args.project,
        name=args.name or run.name,
        id=position.run_id,
        resume="allow",
        dir=str(folder),
        mode="offline" if args.offline else None,
        config={"run": str(run), "config": (run / "config.yaml").read_text()},
    )
    session.define_metric("step")
    session.define_metric("*", step_metric="step")
    for line in tracking.lines(run, position, follow=not args.once):
        session.log(tracking.with_aliases(tracking.flatten(line), args.aliases))
        position.save()
    for name, value in tracking.summary_of(run).items():
        session.summary[f"summary/{name}"] = value
    session.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
