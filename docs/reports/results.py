"""Figures of docs/reports/results.md. `./x figures` runs these functions (docs/figures.py)."""
import re

from figures_recipe import figures


@figures("measured", "slow")
def quickstart_learns_every_seed(fig):
    fig.head("seed", "reward first", "last", "wall", "trained tokens/s", "busy", "neither", "max staleness", align="rrrrrrrr")
    for seed in (1, 2, 3, 4, 5):
        line = f"temper run configs/quickstart.yaml --json --set run_dir={{out}}/run --set seed={seed}"
        r, steps = fig.json(line), fig.jsonl(line, "run/metrics.jsonl")
        audit = fig.text(f"temper audit {fig.path(line, 'run')}")
        reward = [x.reward for x in steps]
        fig.row(seed, f"{sum(reward[:5]) / 5:.3f}", f"{sum(reward[-10:]) / 10:.3f}", f"{r.wall_s:.1f} s", fig.k(r.tokens.trained_per_s), fig.pct(r.utilization.busy),
            fig.pct(r.utilization.no_generation_or_training_s / r.wall_s, 1), r.staleness.max)
        fig.holds(sum(reward[-10:]) / 10 > .9, f"seed {seed} learns")


@figures("measured", "slow")
def staleness_buys_separate_placement(fig):
    fig.head("bound", "generated tokens/s", "trained tokens/s", "wall", "busy", "neither", "max, mean staleness (audit)", align="rrrrrrr")
    for bound in (0, 1, 2, 4):
        r = fig.run(f"configs/quickstart.yaml steps=300 staleness.bound={bound}", driver="")
        fig.row(bound, fig.k(r.tokens.generated_per_s), fig.k(r.tokens.trained_per_s), f"{r.wall_s:.1f} s", fig.pct(r.utilization.busy),
            fig.pct(r.utilization.no_generation_or_training_s / r.wall_s, 1), f"{r.staleness.max}, {r.staleness.mean:.2f}")
        fig.holds(r.staleness.max <= bound, f"no group is older than {bound}")


@figures("measured", "slow")
def staleness_buys_separate_placement_2(fig):
    line = (f"build/release/bench/single_process_baseline --updates 300 --layers 3 --rope-base 100 --groups 64 --responses 8 --minibatches 1"
            " --lr 4e-4 --kl 0.001 --max-new 6 --concurrency 512 --pretrain-noise 0.3 --pretrain-target 0.15 --threads ")
    fig.head("threads", "trained tokens/s", align="rr")
    for threads in (1, 2):
        fig.row(threads, fig.k(float(re.search(r"trained ([0-9]+) tokens/s", fig.text(f"{line}{threads}"))[1])))


@figures("measured", "slow")
def same_cards_turn_or(fig):
    fig.head("placement, bound", "trained tokens/s", "wall", "busy", "neither", "mean staleness", align="lrrrrr")
    for mode, bound in (("separate", 2), ("colocated", 2), ("colocated", 0), ("separate", 0)):
        sets = " placement.mode=colocated rollout.replicas=2" if mode == "colocated" else ""
        r = fig.run(f"configs/quickstart.yaml steps=300 staleness.bound={bound}{sets}", driver="")
        fig.row(f"{mode}, {bound}", fig.k(r.tokens.trained_per_s), f"{r.wall_s:.1f} s", fig.pct(r.utilization.busy),
            fig.pct(r.utilization.no_generation_or_training_s / r.wall_s, 1), f"{r.staleness.mean:.2f}")


@figures("measured", "slow")
def same_cards_turn_or_2(fig):
    r = fig.run("configs/quickstart.yaml steps=300 staleness.bound=2 placement.mode=colocated rollout.replicas=2", driver="")
    fig.head("action", "times", "mean", "longest", "bytes freed on the card", "bytes taken", align="lrrrrr")
    for name, a in r.switches.actions.items():
        fig.row(name, a.count, f"{1e3 * a.mean_s:.3f} ms", f"{1e3 * a.longest_s:.3f} ms", f"{a.device_bytes_freed / a.count:,.0f}", f"{a.device_bytes_taken / a.count:,.0f}")


@figures("measured", "slow")
def gradients_beside_generation(fig):
    line = ("configs/quickstart.yaml staleness.bound=0 rollout.concurrency={} steps=200 pretrain.max_steps=0 checkpoint.every=0"
            " seed={} stragglers.prepare={}")
    fig.head("slots", "wall without", "wall with", "shorter", "busy without", "busy with", "trainer waits without", "trainer waits with", align="rrrrrrrr")
    walls = {}
    for slots in (64, 128, 256, 512):
        runs = {"false": [], "true": []}
        for seed in (1, 2, 3):
            for way in runs:
                runs[way].append(fig.run(line.format(slots, seed, way), driver=""))
        off, on = (sum(r.wall_s for r in all) for all in runs.values())
        walls[slots] = off, on
        busy = [fig.pct(sum(r.utilization.busy for r in all) / 3) for all in runs.values()]
        waits = [fig.pct(sum(w.s for r in all for w in r.waits if w.role == "trainer" and w.state == "wait-data") / sum(r.wall_s for r in all))
                 for all in runs.values()]
        fig.row(slots, f"{off:.1f} s", f"{on:.1f} s", fig.pct(1 - on / off), *busy, *waits)
    best = [min(w[way] for w in walls.values()) for way in (0, 1)]
    fig.say(f"\nThe fastest with them takes {fig.pct(1 - best[1] / best[0])} less than the fastest without.")


@figures("measured", "slow")
def memory_cards_take_turns(fig):
    line = ("python3 bench/card_memory.py bin/temper configs/quickstart.yaml --set placement.mode=fused --set model.hidden=256"
            " --set model.ffn=768 --set rollout.concurrency=4096 --set algorithm.groups_per_update=256 --set algorithm.responses_per_group=16"
            " --set staleness.bound=0 --set pretrain.max_steps=0 --set checkpoint.every=0 --set steps=2 --set placement.card_memory=900MiB")
    fig.say("```\n" + fig.text(line + " 2>/dev/null").strip() + "\n```")


@figures("measured", "slow")
def orchestration_costs(fig):
    fig.say("```\n" + fig.text("./x bench orchestration").strip() + "\n```")


@figures("measured", "slow")
def torch_engines_against_machine(fig):
    fig.say("```\n" + fig.text("./x bench torch_engines").strip() + "\n```")
