"""Figures of docs/reports/faults.md. `./x figures` runs these functions (docs/figures.py)."""
from figures_recipe import figures


@figures("exact", "slow")
def month_384_cards(fig):
    line = ("temper faults configs/cm384_pangu.yaml --set simulation.faults.rate=1"
            " --set simulation.checkpoint.bandwidth=32GB/s --days 30 --seeds 8"
            " --every 4,8,16,32,64,128 --spares 0,1,2 --weight 16 --plot {out}/plot.svg")
    said = fig.text(line)
    fig.table(said)
    fig.say()
    fig.say("\n".join(l for l in said.splitlines() if l.startswith(("30.0 days", "the trainer", "save every"))))
    fig.say()
    fig.plot(line, "plot.svg", "faults.svg")
    fig.say("![goodput over the checkpoint interval](../images/faults.svg)")
