"""A trainer in the loop form, started as a program: loop.py GATE."""

import json
import sys

import numpy as np
import well

import temper

updates = 0


def weights():
    return {"updates": np.array([updates], np.int64)}


def save(folder):
    (folder / "updates.json").write_text(json.dumps(updates))


def load(folder):
    global updates
    updates = json.loads((folder / "updates.json").read_text())


for batch in temper.Trainer(publish=weights, save=save, load=load):
    assert batch.version == updates and len(batch) == 16
    if updates >= well.GATED:
        well.wait_at(sys.argv[1])
    updates += 1
    batch.publish(weights(), {"loss": 0.5})
