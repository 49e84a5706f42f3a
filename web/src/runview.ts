// The view "Run": progress, learning curves, throughput, staleness and failures.
import type { Frame, Live, MetricRow, Metrics } from "./data";
import { Chart, bars, sparse, type Line } from "./charts";
import { bytes, css, el, figure, fill, percent, say, short, span } from "./format";

const PALETTE = ["--c1", "--c2", "--c4", "--c3", "--c5", "--c6"];

/** The rows of each group, in the order of the table. */
function groupsOf(table: MetricRow[]): MetricRow[][] {
  const groups = new Map<string, MetricRow[]>();
  for (const row of table)
    if (row.group) groups.set(row.group, [...(groups.get(row.group) ?? []), row]);
  return [...groups.values()];
}

/** The metrics of a row in these series: those of a family (`terms/*`), or the one that it names. */
function membersOf(row: MetricRow, series: Metrics["series"]): { name: string; label: string }[] {
  if (!row.name.endsWith("/*")) return [row];
  const prefix = row.name.slice(0, -1);
  return Object.keys(series).filter((name) => name.startsWith(prefix)).map((name) => ({ name, label: name.slice(prefix.length) }));
}

function chartOf(rows: MetricRow[]): Chart {
  const hint = rows.length === 1 ? rows[0].doc : rows.map((row) => `${row.label}: ${row.doc}`).join("\n");
  return new Chart(rows[0].group, rows[0].unit ? `${hint} [${rows[0].unit}]` : hint, { zero: rows[0].unit !== "" });
}

export class RunView {
  readonly element = el("div", { class: "view" });
  private readonly tiles = el("dl", { class: "tiles" });
  private readonly bar = el("progress", { max: "1", "aria-label": "Completed steps" });
  private readonly troubles = el("section", { class: "troubles", "aria-label": "Alarms and restarts" });
  private readonly ages = el("div");
  private readonly charts: [MetricRow[], Chart][];
  private byTime = false;
  private smooth = true;
  private metrics: Metrics | null = null;

  constructor(table: MetricRow[]) {
    this.charts = groupsOf(table).map((rows) => [rows, chartOf(rows)]);
    const axis = (text: string, time: boolean) => el("button", { type: "button", "aria-pressed": String(!time), onclick: (e: Event) => {
      this.byTime = time;
      for (const b of (e.target as Element).parentElement!.children) b.setAttribute("aria-pressed", String(b === e.target));
      this.draw();
    } }, text);
    const grid = el("div", { class: "charts" });
    this.charts.forEach(([, chart], i) => {
      grid.append(chart.element);
      if (i === 1) grid.append(el("figure", { class: "chart" }, el("figcaption", {}, el("h3", {}, "Staleness of trained groups")), this.ages));
    });
    this.element.append(this.bar, this.tiles, this.troubles,
      el("div", { class: "bar-row" }, el("h2", {}, "Over the run"), el("span", { class: "right" },
        el("label", {}, el("input", { type: "checkbox", checked: true, onchange: (e: Event) => {
          this.smooth = (e.target as HTMLInputElement).checked;
          this.draw();
        } }), " smooth"),
        el("span", { class: "switch", role: "group", "aria-label": "Axis" }, axis("steps", false), axis("time", true)))), grid);
  }
  destroy(): void {
    this.charts.forEach(([, chart]) => chart.destroy());
  }
  restyle(): void {
    this.charts.forEach(([, chart]) => chart.restyle());
    this.draw();
  }

  frame(frame: Frame): void {
    const live = frame.live;
    if (!live) return;
    const s = live.summary;
    this.bar.value = live.steps > 0 ? s.steps / live.steps : 0;
    const running = frame.state === "running";
    const tokens = running ? live.recent : { raw: s.tokens.generated_per_s, trained: s.tokens.trained_per_s, effective: s.tokens.effective_per_s };
    this.tile("steps", `${s.steps}`, `of ${live.steps}`);
    this.tile(running ? "time left" : "took", running ? (live.left_s == null ? "–" : span(live.left_s)) : span(live.elapsed_s), running ? `after ${span(live.elapsed_s)}` : s.simulated ? "simulated" : "");
    this.tile("reward", figure(s.reward.last), `mean of 10 steps; best 10: ${figure(s.reward.best)}`);
    if (s.evaluation) {
      const last = s.evaluation.points[s.evaluation.points.length - 1];
      const interval = last.pass_1_low == null || last.pass_1_high == null ? "" : `95 %: ${figure(last.pass_1_low, 2)} to ${figure(last.pass_1_high, 2)}; `;
      const noise = last.within_noise && last.step !== s.evaluation.best.step ? ", within noise" : "";
      this.tile("held out, pass@1", figure(last.pass_1), `${interval}best ${figure(s.evaluation.best.pass_1)} at step ${s.evaluation.best.step}${noise}`);
    }
    this.tile("trained tokens/s", short(tokens.trained), `with prompts; ${short(tokens.raw)} sampled, ${short(tokens.trained / Math.max(1, s.cards))} per card; ${running ? "last seconds" : "whole run"}`);
    this.tile("cards busy", percent(s.utilization.busy), `${s.cards} cards, whole run`);
    if (s.mfu) this.tile("MFU", percent(s.mfu.mfu, 1), "of the peak FLOP/s of all cards, whole run");
    if (s.cost?.price != null) this.tile("price of cards", figure(s.cost.price), `${short(s.cost.tokens_per_price ?? 0)} trained tokens per unit`);
    if (s.cost?.kwh != null) this.tile("energy, kWh", figure(s.cost.kwh), `${short(s.cost.tokens_per_kwh ?? 0)} trained tokens per kWh`);
    if (live.slots) this.tile("slots filled", percent(live.slots_mean ?? 0), `of ${live.slots} while engines had work, whole run${running ? `; ${live.slots_held ?? 0} now` : ""}`);
    this.tile("oldest group", `${s.staleness.max}`, `bound ${s.staleness.bound}, mean ${figure(s.staleness.mean, 2)}`);
    this.tile("wasted", percent(s.tokens.generated > 0 ? s.wasted_tokens / s.tokens.generated : 0, 1), "of generated tokens");
    this.tile("length", short(s.lengths.mean), `p99 ${short(s.lengths.p99)}, max ${short(s.lengths.max)}`);
    const ages = Object.entries(s.staleness.histogram).map(([age, groups]) => ({ label: `age ${age}`, value: groups, over: Number(age) > s.staleness.bound }));
    for (let age = ages.length; age <= Math.min(s.staleness.bound, 12); ++age)
      if (!s.staleness.histogram[age]) ages.push({ label: `age ${age}`, value: 0, over: false });
    fill(this.ages, bars(ages, ""), el("p", { class: "note" }, `Trained groups by age in steps. The staleness bound is ${s.staleness.bound}; no group may exceed it.`));
    this.trouble(frame, live);
  }

  private tile(name: string, value: string, more: string): void {
    let tile = this.tiles.querySelector<HTMLElement>(`[data-name="${name}"]`);
    if (!tile) {
      tile = el("div", { "data-name": name }, el("dt", {}, name), el("dd", {}), el("dd", { class: "more" }));
      if (name === "took") this.tiles.querySelector('[data-name="time left"]')?.replaceWith(tile);
      if (name === "time left") this.tiles.querySelector('[data-name="took"]')?.replaceWith(tile);
      if (!tile.isConnected) this.tiles.append(tile);
    }
    say(tile.children[1], value);
    say(tile.children[2], more);
  }

  private trouble(frame: Frame, live: Live): void {
    const s = live.summary;
    const items: HTMLElement[] = [];
    if (frame.state === "lost")
      items.push(el("p", { class: "bad" }, "The run's process ended without a final record. Resume the run from its last checkpoint with ", el("code", {}, "temper run --resume RUN"), "; this page then continues."));
    if (frame.state === "failed" || frame.state === "stopped") items.push(el("p", { class: s.stopped ? "warn" : "bad" }, `${s.stopped ? "Stopped" : "Failed"}: ${s.reason}`));
    for (const alarm of live.alarms.slice(-6).reverse())
      items.push(el("p", { class: "warn" }, el("b", {}, alarm.kind.replaceAll("_", " ")), ` at step ${alarm.step}: ${alarm.text}`));
    if (s.groups.failed > 0) items.push(el("p", { class: "warn" }, `${s.groups.failed} groups failed; the last: ${s.groups.last_failure}`));
    if (s.restarts.length > 0)
      items.push(el("details", {}, el("summary", {}, `${s.restarts.length} restarts, the last at ${span(s.restarts[s.restarts.length - 1].at_s)}`),
        el("ul", {}, ...s.restarts.slice(-20).reverse().map((r) => el("li", {}, `${span(r.at_s)} · ${r.kind} ${r.actor}: ${r.reason}`)))));
    const health = live.health.memory_bytes > 0 && frame.state === "running" ? `${bytes(live.health.memory_bytes)} of memory, ${bytes(live.health.disk_free_bytes)} free on disk · ` : "";
    items.push(el("p", { class: "note" }, `${health}${s.checkpoints.saved} checkpoints${s.checkpoints.last == null ? "" : `, the last of step ${s.checkpoints.last}`} · ${s.groups.filtered} groups filtered, ${s.groups.evicted} evicted`));
    const open = this.troubles.querySelector("details")?.open ?? false;
    fill(this.troubles, ...items);
    const details = this.troubles.querySelector("details");
    if (details) details.open = open;
  }

  set(metrics: Metrics): void {
    this.metrics = metrics;
    this.draw();
  }
  private draw(): void {
    const m = this.metrics;
    if (!m) return;
    const x = this.byTime ? m.time : m.step;
    for (const [rows, chart] of this.charts) {
      const lines: Line[] = [];
      for (const [i, { name, label }] of rows.flatMap((row) => membersOf(row, m.series)).entries()) {
        const column = m.series[name];
        if (column) lines.push({ label, colour: css(PALETTE[i % PALETTE.length]), values: column.mean, min: column.min, max: column.max, smooth: this.smooth && x.length > 60 && !sparse(column.mean) && !/^(staleness|queue|length.m(in|ax))/.test(name) });
      }
      chart.element.hidden = lines.length === 0;
      chart.set({ x, lines });
    }
  }
}
