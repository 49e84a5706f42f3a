// The views besides "Run": Cards, Samples, Why, Compare, and the list of runs.
import { STATES, report, source, type Frame, type Loss, type MetricRow, type Metrics, type RunInfo, type Sample } from "./data";
import { Chart, type Line } from "./charts";
import { css, el, figure, fill, percent, say, short, span } from "./format";
import { HeatMap, type Shade } from "./heat";
import { shareBar, stateLegend } from "./states";
import { TimelineView } from "./timeline";

export interface View {
  readonly element: HTMLElement;
  frame(frame: Frame): void;
  set?(metrics: Metrics): void;
  restyle?(): void;
  destroy(): void;
}

export class CardsView implements View {
  readonly element = el("div", { class: "view" });
  private readonly heat = new HeatMap((actors) => this.line.choose(actors));
  private readonly line: TimelineView;
  private readonly roles = el("div", { class: "roles" });
  private shade: Shade = "state";
  private last: Frame | null = null;

  constructor(run: string) {
    this.line = new TimelineView(run);
    const shades = el("span", { class: "switch", role: "group", "aria-label": "Color of a card" });
    for (const [shade, text] of [["state", "state"], ["busy", "busy share"], ["slots", "slots filled"]] as [Shade, string][])
      shades.append(el("button", { type: "button", "aria-pressed": String(shade === "state"), onclick: (e: Event) => {
        this.shade = shade;
        for (const b of shades.children) b.setAttribute("aria-pressed", String(b === e.target));
        if (this.last) this.frame(this.last);
      } }, text));
    this.element.append(el("div", { class: "bar-row" }, el("h2", {}, "Cards"), shades), this.heat.element, stateLegend(STATES),
      el("h2", {}, "Timeline"), this.line.element, el("h2", {}, "Card time"), this.roles);
  }
  destroy(): void {
    this.heat.destroy();
    this.line.destroy();
  }
  restyle(): void {
    if (this.last) this.frame(this.last);
  }
  frame(frame: Frame): void {
    this.last = frame;
    if (!frame.live) return;
    this.heat.set(frame.live, this.shade);
    this.line.set(frame.live.actors, frame.live.elapsed_s, frame.state === "running");
    const rows = [el("p", {}, el("b", {}, "all cards"), shareBar(frame.live.summary.utilization.states))];
    const byRole = new Map<string, { n: number; shares: Record<string, number> }>();
    for (const line of frame.live.cards) {
      const n = line.cards.reduce((sum, v, i) => sum + (i % 2 ? v : 0), 0);
      const role = [...new Set(line.actors.map((a) => frame.live!.actors[a]?.role))].join(", ");
      const sum = byRole.get(role) ?? { n: 0, shares: {} };
      sum.n += n;
      for (const [s, v] of Object.entries(line.whole)) sum.shares[s] = (sum.shares[s] ?? 0) + v * n;
      byRole.set(role, sum);
    }
    for (const [role, sum] of byRole)
      rows.push(el("p", {}, el("b", {}, `${sum.n} × ${role}`), shareBar(Object.fromEntries(Object.entries(sum.shares).map(([s, v]) => [s, v / sum.n])))));
    fill(this.roles, ...rows);
  }
}

/** Color classes of versions: consecutive versions differ. */
const hue = (version: number) => `v${version % 6}`;

export class SamplesView implements View {
  readonly element = el("div", { class: "view" });
  private readonly list = el("ol", { class: "samples" });
  private readonly count = el("p", { class: "note", role: "status" });
  private readonly form: HTMLFormElement;
  private timer = 0;

  constructor(private readonly run: string) {
    this.form = el("form", { class: "search", role: "search", onsubmit: (e: Event) => { e.preventDefault(); void this.ask(); }, oninput: () => this.later() },
      el("label", {}, "Text ", el("input", { name: "grep", type: "search", placeholder: "in prompt, response or answer", autocomplete: "off" })),
      el("label", {}, "Step ", el("input", { name: "step", type: "number", min: "0", placeholder: "any" })),
      el("label", {}, "Order ", el("select", { name: "order" }, el("option", { value: "newest" }, "newest"), el("option", { value: "worst" }, "worst first"), el("option", { value: "best" }, "best first"))),
      el("button", { type: "submit" }, "Show"));
    this.element.append(el("h2", {}, "Samples"));
    if (!report) this.element.append(this.form);
    this.element.append(this.count, this.list);
    void this.ask();
  }
  destroy(): void {
    clearTimeout(this.timer);
  }
  frame(): void {}
  private later(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.ask(), 300);
  }
  private async ask(): Promise<void> {
    const query = new URLSearchParams({ limit: "20" });
    for (const [name, value] of new FormData(this.form)) if (value) query.set(name, String(value));
    try {
      const found = await source.samples(this.run, query);
      const newest = !query.get("order") || query.get("order") === "newest";
      const groups = newest ? [...found.groups].reverse() : found.groups;
      this.count.textContent = found.why ?? `${groups.length} of ${found.matches} groups: a prompt with all its responses. The background color shows the policy version that sampled the text.`;
      this.list.replaceChildren(...groups.map((group) => groupCard(group, found.reversed)));
    } catch (error) {
      this.count.textContent = String(error);
    }
  }
}

/** A card for one prompt: rewards in a row, expected answer, and each response. */
function groupCard(group: Sample[], reversed: boolean): HTMLElement {
  const first = group[0];
  const rewards = group.map((s) => s.reward).filter((r): r is number => r !== null);
  const mean = rewards.reduce((sum, r) => sum + r, 0) / rewards.length;
  const spread = Math.sqrt(rewards.reduce((sum, r) => sum + (r - mean) ** 2, 0) / rewards.length);
  const facts = [`step ${first.step}`, `group ${first.group}`, first.age == null ? "" : `age ${first.age}`,
    rewards.length < group.length ? `${group.length - rewards.length} of ${group.length} responses not scored` : `${group.length} responses`,
    rewards.length > 1 && spread === 0 ? "equal rewards: no gradient" : ""];
  const chips = el("ul", { class: "rewards", "aria-label": "Rewards of the responses" }, ...group.map((s) =>
    el("li", { class: grade(s.reward), title: `response ${s.place}` }, rewardText(s.reward))));
  const answer = first.answer && el("p", { class: "answer" }, el("span", {}, "expected "), first.answer,
    reversed && el("span", {}, `  digits reversed (task.reverse_answer):  ${[...first.answer].reverse().join("")}`));
  return el("li", {}, el("div", { class: "reward " + (rewards.length ? grade(mean) : "") }, el("b", {}, rewards.length ? figure(mean, 2) : "–"),
    el("span", {}, rewards.length > 1 ? `mean ± ${figure(spread, 2)}` : rewards.length ? "reward" : "not scored")),
  el("div", { class: "text" }, el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")), chips,
    el("p", { class: "prompt" }, first.prompt), answer, el("ol", { class: "responses" }, ...group.map(responseRow))));
}
const grade = (reward: number | null) => (reward === null ? "none" : reward >= 0.999 ? "good" : reward <= 0.001 ? "bad" : "");
const rewardText = (reward: number | null) => (reward === null ? "–" : figure(reward, reward % 1 ? 2 : 0));

function responseRow(s: Sample): HTMLElement {
  const text = el("p", { class: "response" });
  for (const segment of s.segments) text.append(el("span", { class: hue(segment.version), title: `version ${segment.version}, ${segment.tokens} tokens` }, segment.text));
  if (s.segments.length === 0) text.append(s.response);
  if (!text.textContent) text.append(el("em", {}, "(empty)"));
  const versions = s.segments.map((g) => g.version);
  const facts = [`${s.length} tokens`, versions.length ? (versions.length > 1 ? `versions ${versions[0]}–${versions[versions.length - 1]}` : `version ${versions[0]}`) : "",
    `log-prob ${figure(s.logprob, 2)}`, s.outcome === "trained" ? "" : s.outcome, s.reward === null ? "not scored" : "", s.reason, ...Object.entries(s.rewards).map(([name, value]) => `${name} ${figure(value)}`)];
  return el("li", {}, el("b", { class: grade(s.reward) }, rewardText(s.reward)), text, el("span", { class: "facts" }, facts.filter(Boolean).join(" · ")));
}

const SHOWN_LOSSES = 4;

export class WhyView implements View {
  readonly element = el("div", { class: "view" });
  private readonly list = el("ol", { class: "losses" });
  private readonly more = el("ol", { class: "losses" });
  private readonly rest = el("details", { class: "rest" }, el("summary", {}, "Smaller losses"), this.more);
  private readonly lead = el("p", { class: "lead" });
  private readonly busiest = el("section", { class: "busiest", "aria-label": "The busiest cards" });
  private asked = 0;

  constructor(private readonly run: string) {
    this.element.append(el("h2", {}, "What limits the run"), this.busiest, this.lead, el("h2", {}, "Lost card time"), this.list, this.rest,
      el("p", { class: "note" }, "At most: upper limit of the speedup if none of this card time were lost and nothing else changed, limited by the busiest cards. The command simulates the run with the change; its prediction then replaces the limit here."));
  }
  destroy(): void {}
  frame(frame: Frame): void {
    const live = frame.live;
    if (!live) return;
    const s = live.summary;
    fill(this.lead, `Over the whole run, ${s.cards} cards were `, el("b", {}, percent(s.utilization.busy, 1)), " busy",
      s.mfu ? el("span", {}, ", ", el("b", {}, percent(s.mfu.mfu, 1)), " MFU") : null,
      s.slots.slots ? el("span", {}, ", ", el("b", {}, percent(s.slots.while_serving)), " of slots filled while engines had work") : null, ".", shareBar(s.utilization.states));
    const now = Date.now();
    if (now - this.asked < 3000) return;
    this.asked = now;
    void this.load();
  }
  private async load(): Promise<void> {
    try {
      const { busiest, losses } = await source.losses(this.run);
      fill(this.busiest, busiest && el("p", {}, el("b", {}, busiest.headline)), busiest?.advice && el("p", {}, busiest.advice), busiest?.command && el("p", {}, el("code", {}, busiest.command)));
      this.busiest.hidden = !busiest;
      this.list.replaceChildren(...losses.slice(0, SHOWN_LOSSES).map(lossRow));
      this.more.replaceChildren(...losses.slice(SHOWN_LOSSES).map(lossRow));
      this.rest.hidden = losses.length <= SHOWN_LOSSES;
      say(this.rest.firstElementChild!, `${losses.length - SHOWN_LOSSES} smaller losses, ${percent(losses.slice(SHOWN_LOSSES).reduce((sum, l) => sum + l.share, 0), 1)} together`);
      if (losses.length === 0) this.list.replaceChildren(el("li", {}, "No loss above 0.1 % of card time."));
    } catch { /* retried with the next frame */ }
  }
}

function lossRow(l: Loss): HTMLElement {
  const bar = el("span", { class: "bar s-" + l.state });
  bar.style.width = Math.max(0.5, l.share * 100) + "%";
  return el("li", {}, el("div", { class: "what" }, el("b", {}, l.what), el("span", { class: "num" }, `${percent(l.share, 1)} · ${span(l.card_s)} of card time`)),
    el("span", { class: "track" }, bar),
    el("p", {}, l.advice, " ", el("span", { class: "gain" }, predicted(l) ?? `At most +${(l.most_gain * 100).toFixed(1)} %.`)),
    l.command ? el("p", {}, el("code", {}, l.command), l.predicted == null && el("span", { class: "unasked" }, " Not predicted yet.")) : null,
    l.longest_s > 0 ? el("p", { class: "facts" }, `longest wait of a card ${span(l.longest_s)} at ${span(l.longest_at_s)}${l.longest_on ? `: ${l.longest_on}` : ""}`) : null);
}

function predicted(l: Loss): string | null {
  if (l.predicted == null) return null;
  const gain = l.predicted * 100, error = l.predicted_error * 100;
  if (Math.abs(gain) <= Math.max(error, 0.05)) return `Predicted for the change: no difference${error > 0 ? ` (within ${error.toFixed(1)} %)` : ""}.`;
  return `Predicted for the change: ${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(1)} % trained tokens/s${error > 0 ? ` (± ${error.toFixed(1)} %)` : ""}.`;
}

/** Metrics of the table that have a chart for several runs. */
const COMPARED = ["reward", "tokens_per_s/trained", "entropy", "kl", "staleness/mean", "length/mean", "busy"];
const AXES = ["steps", "wall time (s)", "hours", "trained tokens"] as const;

export class CompareView implements View {
  readonly element = el("div", { class: "view" });
  private readonly charts: [string, Chart][];
  private readonly picks = el("fieldset", { class: "picks" });
  private readonly table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of runs" });
  private readonly chosen = new Map<string, Metrics>();
  private infos: RunInfo[] = [];
  private axis = 0;

  constructor(private readonly first: string, table: MetricRow[]) {
    this.charts = table.filter((row) => COMPARED.includes(row.name)).map((row) =>
      [row.name, new Chart(`${row.group}: ${row.label}`, row.unit ? `${row.doc} [${row.unit}]` : row.doc, { group: "compare" })]);
    const axes = el("select", { "aria-label": "Axis", onchange: (e: Event) => { this.axis = (e.target as HTMLSelectElement).selectedIndex; this.draw(); } }, ...AXES.map((a) => el("option", {}, a)));
    this.element.append(el("div", { class: "bar-row" }, el("h2", {}, "Compare"), el("label", {}, "over ", axes)), this.picks, this.table, el("div", { class: "charts" }, ...this.charts.map(([, c]) => c.element)));
    void this.load();
  }
  destroy(): void {
    this.charts.forEach(([, c]) => c.destroy());
  }
  restyle(): void {
    this.charts.forEach(([, c]) => c.restyle());
    this.draw();
  }
  frame(): void {}
  private async load(): Promise<void> {
    this.infos = newestFirst(await source.runs());
    const start = [this.first, ...this.infos.map((r) => r.id).filter((id) => id !== this.first)].slice(0, 3);
    this.picks.replaceChildren(el("legend", {}, "Runs, newest first"), ...this.infos.map((run) => el("label", {}, el("input", { type: "checkbox", checked: start.includes(run.id), onchange: (e: Event) => void this.pick(run.id, (e.target as HTMLInputElement).checked) }), run.id)));
    await Promise.all(start.map((id) => this.pick(id, true)));
  }
  private async pick(id: string, on: boolean): Promise<void> {
    if (on) this.chosen.set(id, await source.metrics(id));
    else this.chosen.delete(id);
    this.draw();
  }
  private xs(m: Metrics): number[] {
    if (this.axis === 0) return m.step;
    if (this.axis === 1) return m.time;
    if (this.axis === 2) return m.time.map((t) => t / 3600);
    const rate = m.series["tokens_per_s/trained"]?.mean ?? [];
    let sum = 0;
    return m.time.map((t, i) => (sum += rate[i] * (t - (i ? m.time[i - 1] : 0))));
  }
  private draw(): void {
    const ids = this.infos.map((r) => r.id).filter((id) => this.chosen.has(id));
    const palette = ["--c1", "--c4", "--c2", "--c3", "--c5", "--c6"].map(css);
    this.charts.forEach(([name, chart]) => {
      const columns = ids.map((id) => ({ id, x: this.xs(this.chosen.get(id)!), y: this.chosen.get(id)!.series[name]?.mean }));
      const x = [...new Set(columns.flatMap((c) => (c.y ? c.x : [])))].sort((a, b) => a - b);
      const lines: Line[] = columns.filter((c) => c.y).map((c) => ({ label: c.id, colour: palette[ids.indexOf(c.id) % palette.length], values: sampled(x, c.x, c.y!), smooth: x.length > 60 }));
      chart.element.hidden = lines.length === 0;
      chart.set({ x, lines });
    });
    const rows = this.infos.filter((r) => this.chosen.has(r.id));
    const mark = (r: RunInfo) => {
      const i = el("i", { class: "mark" });
      i.style.background = palette[ids.indexOf(r.id) % palette.length];
      return i;
    };
    this.table.replaceChildren(runsTable(rows, RUN_COLUMNS, (r) => el("th", { scope: "row" }, mark(r), r.id)));
  }
}

/** A column of the table of runs: its text and its sort key. */
interface RunColumn { name: string; text: (r: RunInfo) => Node | string; key: (r: RunInfo) => number | string }
const date = (s: number) => (s > 0 ? new Date(s * 1000).toLocaleString(undefined, { year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit" }) : "–");
const RUN_COLUMNS: RunColumn[] = [
  { name: "state", text: (r) => el("span", { class: "state " + r.state }, r.state + (r.simulated ? ", simulated" : "")), key: (r) => r.state },
  { name: "began", text: (r) => date(r.began), key: (r) => r.began },
  { name: "steps", text: (r) => `${r.steps} of ${r.steps_wanted}`, key: (r) => r.steps },
  { name: "took", text: (r) => span(r.wall_s), key: (r) => r.wall_s },
  { name: "reward", text: (r) => figure(r.reward), key: (r) => r.reward ?? -Infinity },
  { name: "trained tokens/s", text: (r) => short(r.trained_per_s), key: (r) => r.trained_per_s },
  { name: "busy", text: (r) => percent(r.busy), key: (r) => r.busy },
  { name: "cards", text: (r) => String(r.cards), key: (r) => r.cards },
];
const ALARMS: RunColumn = { name: "alarms", text: (r) => String(r.alarms), key: (r) => r.alarms };
const newestFirst = (runs: RunInfo[]) => [...runs].sort((a, b) => b.began - a.began || a.id.localeCompare(b.id));

interface Sorting { by: string; down: boolean; choose: (column: string) => void }
function runsTable(runs: RunInfo[], columns: RunColumn[], name: (r: RunInfo) => HTMLElement, sorting?: Sorting): HTMLElement {
  const head = (column: string) => {
    if (!sorting) return el("th", { scope: "col" }, column);
    const on = sorting.by === column;
    return el("th", { scope: "col", "aria-sort": on ? (sorting.down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", class: "sort", onclick: () => sorting.choose(column) }, column + (on ? (sorting.down ? " ↓" : " ↑") : "")));
  };
  return el("table", { class: "runs" }, el("thead", {}, el("tr", {}, ...["run", ...columns.map((c) => c.name)].map(head))),
    el("tbody", {}, ...runs.map((r) => el("tr", {}, name(r), ...columns.map((c) => el("td", { "data-label": c.name }, c.text(r)))))));
}

/** Linear interpolation of a line at the x positions of all lines. */
function sampled(x: number[], own: number[], values: number[]): number[] {
  let k = 0;
  return x.map((at) => {
    if (at < own[0] || at > own[own.length - 1]) return null as unknown as number;
    while (k + 1 < own.length && own[k + 1] < at) ++k;
    const [a, b] = [own[k], own[Math.min(k + 1, own.length - 1)]];
    const share = b > a ? Math.min(1, Math.max(0, (at - a) / (b - a))) : 0;
    return values[k] + (values[Math.min(k + 1, values.length - 1)] - values[k]) * share;
  });
}

export class ConfigView implements View {
  readonly element = el("div", { class: "view" });
  constructor(run: string) {
    const text = el("pre", { tabindex: "0" });
    this.element.append(el("h2", {}, "Configuration"), text);
    void source.config(run).then((t) => (text.textContent = t));
    if (report?.certificates) this.element.append(el("h2", {}, "Certificates"), el("p", { class: "note" }, "The groups of the latest steps. Each checksum also covers the line before it."), el("pre", { tabindex: "0" }, report.certificates));
  }
  frame(): void {}
  destroy(): void {}
}

export class RunsView implements View {
  readonly element = el("div", { class: "view" });
  private readonly table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of runs" });
  private readonly timer: number;
  private by = "began";
  private down = true;
  private runs: RunInfo[] = [];
  constructor() {
    this.element.append(el("h2", {}, "Runs"), this.table);
    void this.load();
    this.timer = window.setInterval(() => void this.load(), 5000);
  }
  destroy(): void {
    clearInterval(this.timer);
  }
  frame(): void {}
  private async load(): Promise<void> {
    const runs = await source.runs().catch(() => null);
    if (!runs) return;
    this.runs = runs;
    this.draw();
  }
  private draw(): void {
    const columns = [...RUN_COLUMNS, ALARMS];
    const key = columns.find((c) => c.name === this.by)?.key ?? ((r: RunInfo) => r.id);
    const sorted = newestFirst(this.runs).sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (this.down ? -1 : 1);
    });
    const focus = document.activeElement?.closest(".sort")?.textContent?.replace(/ [↓↑]$/, "");
    const choose = (column: string) => {
      this.down = this.by === column ? !this.down : column !== "run" && column !== "state";
      this.by = column;
      this.draw();
    };
    this.table.replaceChildren(sorted.length === 0 ? el("p", {}, "No runs yet. Start one with temper run CONFIG.")
      : runsTable(sorted, columns, (r) => el("th", { scope: "row" }, el("a", { href: `#/${encodeURIComponent(r.id)}/run` }, r.id)), { by: this.by, down: this.down, choose }));
    if (focus) [...this.table.querySelectorAll<HTMLElement>(".sort")].find((b) => b.textContent!.startsWith(focus))?.focus();
  }
}
