"""Figures of docs/reports/critic.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures

STEPS = (50, 100, 150)
RECIPE = "configs/recipes/critic.yaml"
GROUPS = "--set algorithm.groups_per_update=64 --set algorithm.responses_per_group=8"
RUNS = (("`grpo`, 64 groups of 8", "configs/quickstart.yaml", ""),
        ("`ppo`, 64 groups of 8", "configs/quickstart.yaml", "--set algorithm.name=ppo"),
        ("`ppo_critic`, 64 groups of 8", RECIPE, GROUPS),
        ("`ppo_critic`, 512 single responses", RECIPE, ""))


def state_mib(folder):
    """MiB of weights, gradients and moments of all networks of a trainer, from the sizes of its checkpoint."""
    sizes = {file.name: file.stat().st_size / 2**20 for file in folder.iterdir()}
    return sum(2 * sizes.get(f"{weights}.safetensors", 0) + sizes.get(f"{moments}.safetensors", 0)
               for weights, moments in (("model", "optimizer"), ("critic", "critic_optimizer")))


@figures("measured", "slow")
def learns(fig):
    """Reward, time and memory of the quickstart, with 512 responses per step, with and without a critic."""
    fig.head("quickstart", *[f"step {step}" for step in STEPS], "explained variance", "ms per step", "seconds",
             "trainer, MiB", align="l" + "r" * (len(STEPS) + 4))
    last = {}
    for name, config, sets in RUNS:
        line = (f"temper run {config} --json --set steps={STEPS[-1]} --set checkpoint.every={STEPS[-1]} "
                f"--set run_dir={{out}}/run {sets}")
        steps, seconds = fig.jsonl(line, "run/metrics.jsonl"), fig.json(line).wall_s
        rewards = [sum(m.reward for m in steps[step - 10:step]) / 10 for step in STEPS]
        has_critic = "critic" in steps[-1]
        variance = sum(m.critic.explained_variance for m in steps[-10:]) / 10 if has_critic else None
        each = (steps[-1].time - steps[0].time) / (len(steps) - 1)
        mib = state_mib(fig.path(line, f"run/checkpoints/step-{STEPS[-1]:06d}"))
        last[name] = rewards[-1], mib
        fig.row(name, *[f"{reward:.3f}" for reward in rewards], f"{variance:.2f}" if has_critic else "",
                f"{1000 * each:.0f}", f"{seconds:.0f}", f"{mib:.2f}")
    (grpo, alone), (single, both) = (last[RUNS[i][0]] for i in (0, -1))
    fig.holds(single > 0.8 * grpo, "a critic with single responses learns")
    fig.holds(1.9 < both / alone < 2.1, "the trainer's state is twice as large")
