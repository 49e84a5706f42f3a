// The page: one run at a time, in views. The URL names both, so that it can be shared.
import "uplot/dist/uPlot.min.css";
import "./page.css";
import { follow, report, source, type Frame, type MetricRow, type Metrics } from "./data";
import { el, fill, say } from "./format";
import { RunView } from "./runview";
import { forgetColours } from "./states";
import { CardsView, CompareView, ConfigView, RunsView, SamplesView, WhyView, type View } from "./views";

const VIEWS = ["run", "cards", "samples", "why", "compare", "config"] as const;
type ViewName = (typeof VIEWS)[number];

const top = document.getElementById("top")!;
const main = document.getElementById("main")!;
const title = el("h1", {});
const badge = el("span", { class: "badge", role: "status" });
const subtitle = el("p", { class: "subtitle" });
const tabs = el("nav", { "aria-label": "Views" });
const theme = el("button", { type: "button", class: "theme", title: "Light or dark", "aria-label": "Light or dark", onclick: () => turn() }, "◐");
top.append(el("div", { class: "head" }, el("div", {}, title, subtitle), el("div", { class: "right" }, badge, theme)), tabs);

let run = "";
let view: View | null = null;
let name: ViewName | "runs" = "run";
let stop = () => {};
let frame: Frame | null = null;
let metrics: Metrics | null = null;
let table: MetricRow[] = [];
let asking = false;
let linked = true;

function turn(): void {
  const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark") && !document.documentElement.classList.contains("light")
    ? !matchMedia("(prefers-color-scheme: light)").matches || document.documentElement.classList.contains("dark") : document.documentElement.classList.contains("dark");
  document.documentElement.classList.remove("dark", "light");
  document.documentElement.classList.add(dark ? "light" : "dark");
  forgetColours();
  view?.restyle?.();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  forgetColours();
  view?.restyle?.();
});

function make(): View {
  switch (name) {
    case "runs": return new RunsView();
    case "cards": return new CardsView(run);
    case "samples": return new SamplesView(run);
    case "why": return new WhyView(run);
    case "compare": return new CompareView(run, table);
    case "config": return new ConfigView(run);
    default: return new RunView(table);
  }
}

function show(): void {
  view?.destroy();
  view = make();
  main.replaceChildren(view.element);
  if (frame) view.frame(frame);
  if (metrics) view.set?.(metrics);
  const shown = report ? VIEWS.filter((v) => v !== "compare") : VIEWS;
  fill(tabs, report ? null : el("a", { href: "#/", "aria-current": name === "runs" ? "page" : "false" }, "all runs"),
    ...(name === "runs" ? [] : shown.map((v) => el("a", { href: report ? `#/${v}` : `#/${encodeURIComponent(run)}/${v}`, "aria-current": v === name ? "page" : "false" }, v))));
  head();
}

function head(): void {
  const live = frame?.live;
  say(title, name === "runs" ? "Temper" : live?.summary.name || run);
  say(subtitle, name === "runs" ? "Runs on this machine" : live ? `${live.subtitle}${live.summary.simulated ? ", simulated" : ""} · ${run}` : "waiting for the run's first data");
  const state = !linked ? "no connection" : !frame || !live || name === "runs" ? "" : frame.state;
  say(badge, state);
  badge.className = "badge " + state.replace(" ", "-");
  document.title = (name === "runs" ? "Runs" : `${live?.summary.name || run}${live ? ` ${live.summary.steps}/${live.steps}` : ""}`) + " · Temper";
}

async function refresh(): Promise<void> {
  if (asking || !run) return;
  asking = true;
  try {
    const from = metrics ? Math.max(0, metrics.points - 2) : 0;
    const more = await source.metrics(run, from);
    metrics = metrics && !report ? joined(metrics, more) ?? (await source.metrics(run)) : more;
    view?.set?.(metrics);
  } catch { /* the stream reports a lost connection */ }
  asking = false;
}
/** Appends new points to the known ones; null if the known points have changed. */
function joined(old: Metrics, more: Metrics): Metrics | null {
  if (more.stride !== old.stride || more.from > old.points || more.points < old.points || more.step[0] !== old.step[more.from]) return null;
  const join = (a: number[] | undefined, b: number[] | undefined) => (a && b ? [...a.slice(0, more.from), ...b] : b);
  const series: Metrics["series"] = {};
  for (const [key, column] of Object.entries(more.series)) {
    const was = old.series[key];
    if (!was) return null;
    series[key] = { mean: join(was.mean, column.mean)!, min: join(was.min, column.min), max: join(was.max, column.max) };
  }
  return { ...more, from: 0, step: join(old.step, more.step)!, time: join(old.time, more.time)!, series };
}

async function open(id: string): Promise<void> {
  if (id === run) return;
  stop();
  run = id;
  frame = null;
  metrics = null;
  stop = follow(id, (next) => {
    const news = next.live?.updates !== frame?.live?.updates || !metrics || next.state !== frame?.state;
    frame = next;
    view?.frame(next);
    head();
    if (news) void refresh();
  }, (up) => {
    linked = up;
    head();
  });
}

async function route(): Promise<void> {
  if (table.length === 0) table = await source.table().catch(() => []);
  const [id, which] = report ? [report.frame.id, location.hash.slice(2)] : location.hash.slice(2).split("/").map(decodeURIComponent);
  if (!id) {
    const runs = await source.runs().catch(() => []);
    if (runs.length === 1 && !location.hash) {
      location.replace(`#/${encodeURIComponent(runs[0].id)}/run`);
      return;
    }
    stop();
    stop = () => {};
    run = "";
    frame = null;
    metrics = null;
    name = "runs";
  } else {
    await open(id);
    name = VIEWS.includes(which as ViewName) ? (which as ViewName) : "run";
  }
  show();
}
addEventListener("hashchange", () => void route());
void route();
