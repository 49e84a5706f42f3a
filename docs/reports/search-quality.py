"""Figures of docs/reports/search-quality.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0] * len(values)
    for place, i in enumerate(order):
        out[i] = sum(p for p, j in enumerate(order) if values[j] == values[i]) / sum(1 for v in values if v == values[i])
    return out


def correlation(a, b):
    """Spearman's rank correlation."""
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    product = lambda x, y: sum((i - mean) * (j - mean) for i, j in zip(x, y))
    return product(a, b) / (product(a, a) * product(b, b)) ** 0.5


@figures("exact", "slow")
def search_tune_checked(fig):
    questions = {
        "A": "configs/cm384_pangu.yaml --eta 0,2 --only engine_cards=32,64 --only tp=4 --only slots=32,128 --only reference_cards=32"
             " --only rollout_share=5,9 --only return_share=25",
        "B": "docs/cluster/pipeline.yaml --eta 0,2,4 --only engine_cards=4,8 --only tp=2,4,8 --only slots=32,128"
             " --only rollout_share=4,8 --only return_share=0,25",
        "C": "configs/cm384_x4_pangu.yaml --set algorithm.groups_per_update=512 --eta 0,2 --only engine_cards=64 --only tp=4 --only slots=32,128 --only reference_cards=128"
             " --only rollout_share=6,9 --only return_share=25",
        "D": "configs/cm384_pangu.yaml --set simulation.model=qwen3-8b --set placement.cards=16 --set placement.rollout_cards=8"
             " --set placement.reference_cards=2 --set rollout.replicas=4 --set rollout.concurrency=128 --set simulation.rollout.tp=2"
             " --set simulation.rollout.ep=1 --set simulation.trainer.tp=2 --set simulation.trainer.pp=1 --set simulation.trainer.ep=1"
             " --set algorithm.groups_per_update=64 --set algorithm.responses_per_group=8 --set simulation.response.mean=2000"
             " --set simulation.response.cap=8192 --eta 0,1,4 --only engine_cards=1,2,4 --only tp=1,2 --only slots=16,64"
             " --only reference_cards=2 --only rollout_share=6,10 --only return_share=0,25",
        "E": "configs/a3_64_qwen3_235b_32k.yaml --eta 0,1,3 --only engine_cards=16,32 --only tp=4,8 --only slots=16,64"
             " --only rollout_share=4,8 --only return_share=25",
        "F": "configs/a3_128_r1_671b.yaml --eta 0,1,2 --only engine_cards=16,32 --only tp=2,4 --only slots=32,64"
             " --only reference_cards=10 --only rollout_share=4,8 --only return_share=25",
    }
    fig.head("question", "points", "rank correlation", "mean error", "of hybrid", "best of every point", "best of 16 runs", "regret", align="lrrrrrrr")
    for name, words in questions.items():
        line = f"temper tune {words} --only lending=0 --threads 1 --steps 2 --out {{out}}"
        every = [r for r in fig.rows(line + " --effort 5000", "tune.csv") if r.sampled_tokens_per_s != "" and r.closed_tokens_per_s != ""]
        found = [r for r in fig.rows(line + " --effort 16", "tune.csv") if r.sampled_tokens_per_s != ""]
        error = lambda rs: fig.pct(sum(abs(r.closed_tokens_per_s / r.sampled_tokens_per_s - 1) for r in rs) / len(rs), 1) if rs else "-"
        most = lambda rs: max(r.sampled_tokens_per_s for r in rs)
        fig.row(name, len(every), f"{correlation([r.closed_tokens_per_s for r in every], [r.sampled_tokens_per_s for r in every]):.2f}",
            error(every), error([r for r in every if r["mode"] == "hybrid"]), fig.k(most(every)), fig.k(most(found)), fig.pct(1 - most(found) / most(every), 1))


def tools_points(fig, tools):
    """Every point of a small space, by its plan."""
    line = (f"temper tune configs/recipes/tools-supernode.yaml {tools} --set algorithm.groups_per_update=512 --modes separate,fused --eta 0,2"
            " --only engine_cards=32,64 --only tp=4 --only slots=32,128 --only reference_cards=32 --only rollout_share=5,7,8,9,11"
            " --only return_share=0 --objective throughput --threads 1 --steps 2 --effort 5000 --out {out}")
    return {tuple(r[key] for key in ("mode", "eta", "rollout_cards", "trainer_cards", "engines", "slots", "rollout_layout", "trainer_layout")): r
            for r in fig.rows(line, "tune.csv") if r.closed_tokens_per_s != "" and r.sampled_tokens_per_s != ""}


@figures("exact", "slow")
def tools(fig):
    plain = tools_points(fig, "--set simulation.tools=null")
    fig.head("latency", "placement", "bound", "points", "rank correlation, calls left out", "with calls",
             "mean error, calls left out", "with calls", align="llrrrrrr")
    for latency in ("10 s", "60 s", "300 s"):
        points = tools_points(fig, f"--set simulation.tools.latency.mean={latency.replace(' ', '')} --set simulation.tools.latency.cap=2h")
        for modes, bounds in ((("separate",), (0,)), (("separate",), (2,)), (("fused",), (0,)), (("fused",), (2,)), (("separate", "fused"), (0, 2))):
            part = [key for key, r in points.items() if r["mode"] in modes and r.eta in bounds and key in plain]
            runs = [points[key].sampled_tokens_per_s for key in part]
            closed = [[of[key].closed_tokens_per_s for key in part] for of in (plain, points)]
            fig.row(latency, " and ".join(modes), " and ".join(str(b) for b in bounds), len(part),
                    *(f"{correlation(c, runs):.2f}" for c in closed),
                    *(fig.pct(sum(abs(x / y - 1) for x, y in zip(c, runs)) / len(runs), 1) for c in closed))
