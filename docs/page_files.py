"""What the commands of a page need: files that a reader has, and runs in progress (docs/figures_commands.py).

BEFORE[page] lists (beginning of a command, shell lines). The lines run in the page's scratch folder before the first
command that begins so. What they start in the background ends with the page.
"""
QUICKSTART = "temper run configs/quickstart.yaml --plain --set run_dir={run} {sets} > {name}.log 2>&1"


def quickstart(run, sets, name="quickstart"):
    return QUICKSTART.format(run=run, name=name, sets=" ".join(f"--set {s}" for s in sets.split()))


def rows_of(name, file, hardware):
    """Rows measured on an H200 as if they were of the card of this description, without those that need more memory."""
    return (f"sed 's/^nvidia-h200,/{name},/' configs/validation/h200.csv > {file}\n"
            "cp configs/validation/lens_*.json .\n"
            f"temper validate {file} --hardware-file {hardware} --allow-failures |\n"
            f"  sed -n 's/^{file}:\\([0-9]*\\) .* FAILED: .*: memory of a device.*/\\1d/p' > too_large.sed\n"
            f"sed -i -f too_large.sed {file}")


BEFORE = {
    "how-to/many-machines": [
        ("temper keys", "mkdir -p runs"),
    ],
    "how-to/own-cluster": [
        ("temper calibrate", rows_of("my-h100", "my-h100.csv", "docs/cluster/my-h100.yaml")),
    ],
    "how-to/resume": [
        ("temper run --resume runs/first ", quickstart("runs/first", "steps=60 checkpoint.every=20 checkpoint.keep=100")),
        ("temper run --resume configs/quickstart.yaml",
         "temper run configs/quickstart.yaml --plain --set steps=60 > newest.log 2>&1"),
        ("temper run configs/quickstart.yaml --plain --set steps=60", "rm -rf runs/first"),
        ("temper scale runs/first", "rm -rf runs/first; " + quickstart("runs/first", "steps=1000000 checkpoint.every=20 "
                                                                       "checkpoint.keep=10000", "first") + " &\n"
         "until [ -e runs/first/checkpoints/step-000040 ]; do kill -0 $!; sleep 1; done"),
        ("temper run experiments/kl.yaml",
         "mkdir experiments\n"
         "printf 'extends: quickstart\\nrun_dir: runs/kl\\n' > base.yaml\n"
         "printf 'extends: ../base.yaml\\nalgorithm: {kl: 0.002}\\n' > experiments/kl.yaml\n"
         "printf 'steps: 30\\n' > long.yaml"),
    ],
    "how-to/tune": [
        ("temper tune configs/quickstart.yaml --lengths", quickstart("runs/first", "steps=100")),
    ],
    "how-to/your-model": [
        ("temper model models/Qwen3-0.6B",
         "mkdir -p models && temper model smollm2 > smollm2.txt\n"
         "ln -s \"${TEMPER_CACHE:-$HOME/.cache/temper}\"/smollm2-*/model models/Qwen3-0.6B\n"
         "printf 'extends: smollm2\\nrun_dir: runs/my-run\\nsteps: 2\\nmodel: {path: models/Qwen3-0.6B}\\n"
         "algorithm: {groups_per_update: 2, responses_per_group: 2}\\nevaluation: {every: 0}\\n' > my.yaml"),
    ],
    "reference/hardware": [
        ("temper calibrate", "cp docs/cluster/my-h100.yaml my-card.yaml\n"
         "sed -i 's/^name: .*/name: my-card/' my-card.yaml\n" + rows_of("my-card", "rows.csv", "my-card.yaml")),
    ],
}
