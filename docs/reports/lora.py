"""Figures of docs/reports/lora.md. `./x figures` runs these functions (docs/figures.py)."""
import pathlib
import re
import shlex

from figures_recipe import figures

STEPS, SEEDS, RANK = (20, 40, 60), (1,), 8
LORA = f'--set "model.lora={{rank: {RANK}, alpha: {2 * RANK}}}"'
#: One step, a checkpoint, and small passes: activations of 256 tokens.
SHORT = ("steps=1 checkpoint.every=1 evaluation.every=0 samples.share=0 algorithm.micro_batch_tokens=256 algorithm.filter_equal_rewards=false "
         "algorithm.groups_per_update=4 algorithm.minibatches=1 rollout.concurrency=32 deadlines.generate=10min deadlines.train=10min")


def peaks(fig, line):
    """Most resident MiB of the worker of each role while a command line runs, and its folder."""
    most = {}

    def look(alive):
        for one in alive:
            try:
                text = pathlib.Path(f"/proc/{one}/status").read_text()
            except OSError:
                continue
            name, held = re.search(r"Name:\s+(\S+)", text)[1], re.search(r"VmHWM:\s+(\d+)", text)
            if held:
                most[name] = max(most.get(name, 0), int(held[1]) / 1024)

    _, out = fig.watch(line, look)
    return most, out


def checkpoint_mib(folder):
    """MiB of the trained weights and of their moments, from the sizes of a checkpoint in float32."""
    def mib(name):
        file = folder / "run/checkpoints/step-000001" / name
        return file.stat().st_size / 2**20 if file.exists() else 0
    return mib("adapter_model.safetensors") or mib("model.safetensors"), mib("optimizer.safetensors")


@figures("measured", "slow")
def sizes(fig):
    """SmolLM2: bytes of a version, and memory of trainer and engine, with both types of products."""
    fig.head("SmolLM2-135M, MiB", "products", "all weights", "LoRA", "share", align="llrrr")
    for products, share in (("bfloat16", 0.5), ("float32", 1)):
        sets = " ".join(f"--set {shlex.quote(s)}" for s in [*SHORT.split(), f"model.compute_dtype={products}"])
        found = []
        for name in ("smollm2", "smollm2-lora"):
            most, folder = peaks(fig, f"temper run configs/{name}.yaml --plain {sets} --set run_dir={{out}}/run")
            found.append((*checkpoint_mib(folder), most))
        (full, full_moments, full_most), (lora, lora_moments, lora_most) = found

        def row(what, a, b, most):
            fig.row(what, products, f"{a:.1f}", f"{b:.1f}", f"{100 * b / a:.1f} %")
            fig.holds(b < most * a, f"{what} ({products}): LoRA has less than {most:.2f} of the bytes")

        row("a published version", share * full, lora, 0.04)
        # Frozen matrices, like published ones, have the type of the products; trained ones are float32.
        row("weights, gradients and moments of the trainer", 2 * full + full_moments, share * full + 2 * lora + lora_moments, 1 / 3)
        row("trainer process, peak", full_most["trainer"], lora_most["trainer"], 1 / 3 if products == "bfloat16" else 0.4)
        row("rollout process, peak", full_most["rollout-0"], lora_most["rollout-0"], 1.1)


@figures("measured", "slow")
def learns(fig):
    """The quickstart with all weights and with adapters."""
    fig.head("quickstart", "learning rate", *[f"step {step}" for step in STEPS], "seconds", align="lr" + "r" * (len(STEPS) + 1))
    means = {}
    for name, rate, sets in (("all weights", "4e-4", ""), (f"LoRA, rank {RANK}, all layers", "4e-3", LORA)):
        runs = []
        for seed in SEEDS:
            line = (f"temper run configs/quickstart.yaml --json --set seed={seed} --set steps={STEPS[-1]} --set algorithm.learning_rate={rate} "
                    f"--set run_dir={{out}}/run {sets}")
            runs.append((fig.json(line), fig.jsonl(line, "run/metrics.jsonl")))
        means[name] = [sum(sum(m.reward for m in steps[step - 10:step]) / 10 for _, steps in runs) / len(runs) for step in STEPS]
        seconds = sum(summary.wall_s for summary, _ in runs) / len(runs)
        fig.row(name, rate, *[f"{reward:.3f}" for reward in means[name]], f"{seconds:.0f}")
    lora = means[f"LoRA, rank {RANK}, all layers"]
    fig.holds(lora[-1] > 1.5 * lora[0], "the adapter learns")
