"""Figures of docs/reports/recipes.md. `./x figures` runs these functions (docs/figures.py)."""
import shlex

from figures_program import ROOT
from figures_recipe import figures

STEPS, BASE = 40, "configs/quickstart.yaml"
LORA = ('"model.lora={rank: 8, alpha: 16}"', "algorithm.learning_rate=4e-3")
#: Name, configuration, settings. {teacher} is a trained quickstart.
RECIPES = (
    ("`grpo`, all weights", BASE, ()),
    ("LoRA, rank 8", BASE, LORA),
    ("`opd`: a teacher, no reward", "configs/recipes/distillation.yaml", ("reference.model={teacher}",)),
    ("`ppo_critic`, 512 single responses", "configs/recipes/critic.yaml", ()),
    ("sum with a judge", "configs/recipes/sum.yaml", ("algorithm.groups_per_update=64",)),
    ("`finish`, bound 2", BASE, ("rollout.on_new_weights=finish",)),
    ("`finish` with LoRA, bound 2", BASE, (*LORA, "rollout.on_new_weights=finish")),
)
JUDGE = f"python3 {shlex.quote(str(ROOT / 'python/examples/judge_server.py'))} --port 8199 > /dev/null 2>&1 &"


def checkpoint_mib(folder):
    """MiB of a published version, and of the trainer's weights, gradients and moments, from the files of a checkpoint."""
    def mib(name):
        file = folder / name
        return file.stat().st_size / 2**20 if file.exists() else 0
    adapter, weights = mib("adapter_model.safetensors"), mib("model.safetensors")
    state = 2 * (adapter + weights + mib("critic.safetensors")) + mib("optimizer.safetensors") + mib("critic_optimizer.safetensors")
    if adapter:
        state += mib("../../base/model.safetensors")  # Frozen: without gradients.
    return adapter or weights, state


def right(fig, line):
    """Share of right answers in the last ten steps: the reward, unless it is a sum."""
    steps = fig.jsonl(line, "run/metrics.jsonl")[-10:]
    return sum(step.terms.right if "terms" in step else step.reward for step in steps) / len(steps)


@figures("measured", "slow")
def beside_grpo(fig):
    """Score, time, published bytes and memory of each recipe, with the audit of its run."""
    trained = f"temper run {BASE} --json --set steps=200 --set run_dir={{out}}/run"
    teacher = fig.path(f"temper export {fig.path(trained, 'run')} {{out}}/teacher", "teacher")
    fig.program.prepare(JUDGE)
    fig.head("recipe", "right answers", "seconds", "published, MiB", "trainer, MiB", "audit", align="lrrrrl")
    found = {}
    for name, config, sets in RECIPES:
        given = [f"--set {s.format(teacher=teacher) if '{teacher}' in s else s}" for s in sets]
        line = (f"temper run {config} --json --set steps={STEPS} --set checkpoint.every={STEPS} --set run_dir={{out}}/run "
                + " ".join(given))
        seconds, run = fig.json(line).wall_s, fig.path(line, "run")
        published, state = checkpoint_mib(run / f"checkpoints/step-{STEPS:06d}")
        verdict = fig.text(f"temper audit {run}").strip().splitlines()[-1]
        score = right(fig, line)
        found[name] = score, published, state
        fig.row(name, f"{score:.3f}", f"{seconds:.0f}", f"{published:.2f}", f"{state:.2f}", verdict)
        fig.holds(verdict == "clean", f"the audit of {name} is clean")
    score, published, state = found[RECIPES[0][0]]
    fig.holds(all(one[0] > 0.5 * score for one in found.values()), "every recipe learns")
    lora = found[RECIPES[1][0]]
    fig.holds(lora[1] < published and lora[2] < state, "an adapter is smaller")
