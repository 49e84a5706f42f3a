// The views besides "Run": Cards, Samples, Why, Compare, and the list of runs.
import { STATES, report, source, type Frame, type Loss, type Metrics, type RunInfo, type Sample } from "./data";
import { Chart, type Line } from "./charts";
import { css, el, figure, fill, percent, short, span } from "./format";
import { HeatMap, type Shade } from "./heat";
import { colour, shareBar, stateLegend } from "./states";
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
    const shades = el("span", { class: "switch", role: "group", "aria-label": "Colour of a card" });
    for (const [shade, text] of [["state", "state"], ["busy", "busy share"], ["slots", "slots filled"]] as [Shade, string][])
      shades.append(el("button", { type: "button", "aria-pressed": String(shade === "state"), onclick: (e: Event) => {
        this.shade = shade;
        for (const b of shades.children) b.setAttribute("aria-pressed", String(b === e.target));
        if (this.last) this.frame(this.last);
      } }, text));
    this.element.append(el("div", { class: "bar-row" }, el("h2", {}, "Cards"), shades), this.heat.element, stateLegend(STATES),
      el("h2", {}, "Time line"), this.line.element, el("h2", {}, "Card time"), this.roles);
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

/** Colours of versions: neighbours differ, whatever they are. */
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
      el("label", {}, "Update ", el("input", { name: "step", type: "number", min: "0", placeholder: "any" })),
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
    const query = new URLSearchParams({ limit: "60" });
    for (const [name, value] of new FormData(this.form)) if (value) query.set(name, String(value));
    try {
      const found = await source.samples(this.run, query);
      const newest = !query.get("order") || query.get("order") === "newest";
      const samples = newest ? [...found.samples].reverse() : found.samples;
      this.count.textContent = found.why ?? `${samples.length} of ${found.matches} samples. The colour behind the text is the version that sampled it.`;
      this.list.replaceChildren(...samples.map(sampleCard));
    } catch (error) {
      this.count.textContent = String(error);
    }
  }
}

function sampleCard(s: Sample): HTMLElement {
  const text = el("p", { class: "response" });
  for (const segment of s.segments) text.append(el("span", { class: hue(segment.version), title: `version ${segment.version}, ${segment.tokens} tokens` }, segment.text));
  if (s.segments.length === 0) text.append(s.response);
  if (!text.textContent) text.append(el("em", {}, "(empty)"));
  const parts = Object.entries(s.rewards).map(([name, value]) => `${name} ${figure(value)}`);
  const versions = s.segments.map((g) => g.version);
  const facts = [`update ${s.step}`, `group ${s.group}.${s.place}`, s.age == null ? s.outcome : `age ${s.age}`, `${s.length} tokens`,
    versions.length ? (versions.length > 1 ? `versions ${versions[0]}–${versions[versions.length - 1]}` : `version ${versions[0]}`) : "", `log-prob ${figure(s.logprob, 2)}`, s.reason, ...parts];
  const grade = s.reward >= 0.999 ? "good" : s.reward <= 0.001 ? "bad" : "";
  return el("li", {}, el("div", { class: "reward " + grade }, el("b", {}, figure(s.reward, s.reward % 1 ? 2 : 0)), el("span", {}, "reward")),
    el("div", { class: "text" }, el("p", { class: "prompt" }, s.prompt), text, s.answer && s.answer !== s.response ? el("p", { class: "answer" }, el("span", {}, "answer "), s.answer) : null,
      el("p", { class: "facts" }, facts.filter(Boolean).join(" · "))));
}

export class WhyView implements View {
  readonly element = el("div", { class: "view" });
  private readonly list = el("ol", { class: "losses" });
  private readonly lead = el("p", { class: "lead" });
  private asked = 0;

  constructor(private readonly run: string) {
    this.element.append(el("h2", {}, "Why cards were not at work"), this.lead, this.list,
      el("p", { class: "note" }, "At most: how much faster the run would be if none of that card time were lost and all else stayed as it is. The command decides the run again under the change and says what it would bring, which can be more, since a change acts on other waits too; once it was run, its answer stands here."));
  }
  destroy(): void {}
  frame(frame: Frame): void {
    const live = frame.live;
    if (!live) return;
    fill(this.lead, `Of ${live.summary.cards} cards' time, `, el("b", {}, percent(live.summary.utilization.busy, 1)), " was the work of the run.", shareBar(live.summary.utilization.states));
    const now = Date.now();
    if (now - this.asked < 3000) return;
    this.asked = now;
    void this.load();
  }
  private async load(): Promise<void> {
    try {
      const losses = await source.losses(this.run);
      this.list.replaceChildren(...losses.slice(0, 12).map((l) => {
        const bar = el("span", { class: "bar s-" + l.state });
        bar.style.width = Math.max(0.5, l.share * 100) + "%";
        return el("li", {}, el("div", { class: "what" }, el("b", {}, l.what), el("span", { class: "num" }, `${percent(l.share, 1)} · ${span(l.card_s)} of card time`)),
          el("span", { class: "track" }, bar),
          el("p", {}, l.advice, " ", el("span", { class: "gain" }, `This alone: at most +${(l.most_gain * 100).toFixed(1)} %.`), " ", predicted(l)),
          l.command ? el("p", {}, el("code", {}, l.command)) : null,
          l.longest_s > 0 ? el("p", { class: "facts" }, `longest wait ${span(l.longest_s)} at ${span(l.longest_at_s)}${l.longest_on ? `: ${l.longest_on}` : ""}`) : null);
      }));
      if (losses.length === 0) this.list.replaceChildren(el("li", {}, "No loss of a thousandth of the card time or more."));
    } catch { /* asked again with the next frame */ }
  }
}

function predicted(l: Loss): HTMLElement {
  if (l.predicted == null) return el("span", { class: "unasked" }, l.command ? "Not predicted yet." : "No model knows what the change would bring.");
  const gain = l.predicted * 100, error = l.predicted_error * 100;
  const sure = Math.abs(gain) > error ? "" : ", not told apart from none";
  return el("b", {}, `Predicted for the change: ${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(1)} % trained tokens/s${sure}${error > 0 ? ` (unchanged settings are missed by ${error.toFixed(1)} %)` : ""}.`);
}

const COMPARED: [string, string][] = [["reward", "Reward"], ["tokens_per_s/trained", "Trained tokens per second"], ["entropy", "Entropy"], ["kl", "KL"], ["staleness/mean", "Mean age"], ["length/mean", "Response length"], ["busy", "Cards busy"]];
const AXES = ["updates", "wall time (s)", "hours", "trained tokens"] as const;

export class CompareView implements View {
  readonly element = el("div", { class: "view" });
  private readonly charts = COMPARED.map(([, title]) => new Chart(title, title + " of several runs.", { group: "compare" }));
  private readonly picks = el("fieldset", { class: "picks" });
  private readonly table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of runs" });
  private readonly chosen = new Map<string, Metrics>();
  private infos: RunInfo[] = [];
  private axis = 0;

  constructor(private readonly first: string) {
    const axes = el("select", { "aria-label": "Axis", onchange: (e: Event) => { this.axis = (e.target as HTMLSelectElement).selectedIndex; this.draw(); } }, ...AXES.map((a) => el("option", {}, a)));
    this.element.append(el("div", { class: "bar-row" }, el("h2", {}, "Compare"), el("label", {}, "over ", axes)), this.picks, this.table, el("div", { class: "charts" }, ...this.charts.map((c) => c.element)));
    void this.load();
  }
  destroy(): void {
    this.charts.forEach((c) => c.destroy());
  }
  restyle(): void {
    this.charts.forEach((c) => c.restyle());
    this.draw();
  }
  frame(): void {}
  private async load(): Promise<void> {
    this.infos = await source.runs();
    const start = [this.first, ...this.infos.map((r) => r.id).filter((id) => id !== this.first)].slice(0, 3);
    this.picks.replaceChildren(el("legend", {}, "Runs"), ...this.infos.map((run) => el("label", {}, el("input", { type: "checkbox", checked: start.includes(run.id), onchange: (e: Event) => void this.pick(run.id, (e.target as HTMLInputElement).checked) }), run.id)));
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
    COMPARED.forEach(([name], chart) => {
      const columns = ids.map((id) => ({ id, x: this.xs(this.chosen.get(id)!), y: this.chosen.get(id)!.series[name]?.mean }));
      const x = [...new Set(columns.flatMap((c) => (c.y ? c.x : [])))].sort((a, b) => a - b);
      const lines: Line[] = columns.filter((c) => c.y).map((c) => ({ label: c.id, colour: palette[ids.indexOf(c.id) % palette.length], values: sampled(x, c.x, c.y!) }));
      this.charts[chart].element.hidden = lines.length === 0;
      this.charts[chart].set({ x, lines });
    });
    const rows = this.infos.filter((r) => this.chosen.has(r.id));
    const head = ["run", "state", "updates", "took", "reward", "trained tokens/s", "busy", "cards"];
    this.table.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...rows.map((r) => {
        const mark = el("i", { class: "mark" });
        mark.style.background = palette[ids.indexOf(r.id) % palette.length];
        return el("tr", {}, el("th", { scope: "row" }, mark, r.id), ...[r.state, `${r.steps} of ${r.steps_wanted}`, span(r.wall_s), figure(r.reward), short(r.trained_per_s), percent(r.busy), String(r.cards)].map((c) => el("td", {}, c)));
      }))));
  }
}

/** The values of a line at the positions of all lines; between its own points, straight. */
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
    if (report?.certificates) this.element.append(el("h2", {}, "Certificates"), el("p", { class: "note" }, "What the latest updates were made of; each line proves the one before it."), el("pre", { tabindex: "0" }, report.certificates));
  }
  frame(): void {}
  destroy(): void {}
}

export class RunsView implements View {
  readonly element = el("div", { class: "view" });
  private readonly table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of runs" });
  private readonly timer: number;
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
    const mark = (state: string) => { const i = el("i", { class: "mark" }); i.style.background = state === "running" ? colour("decode") : state === "lost" ? css("--bad") : css("--faint"); return i; };
    const head = ["run", "state", "updates", "took", "reward", "trained tokens/s", "busy", "cards", "alarms"];
    this.table.replaceChildren(runs.length === 0 ? el("p", {}, "No runs here yet.") : el("table", {}, el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...runs.map((r) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: `#/${encodeURIComponent(r.id)}/run` }, r.id)), el("td", {}, mark(r.state), r.state + (r.simulated ? ", simulated" : "")),
        ...[`${r.steps} of ${r.steps_wanted}`, span(r.wall_s), figure(r.reward), short(r.trained_per_s), percent(r.busy), String(r.cards), String(r.alarms)].map((c) => el("td", {}, c)))))));
  }
}
