// Line charts with uPlot: a caption with the value under the pointer, a band from minimum to
// maximum, and a cursor shared by all charts of a view.
import uPlot from "uplot";
import { css, el, say, short, tickLabels } from "./format";

export interface Line { label: string; colour: string; values: number[]; min?: number[]; max?: number[]; smooth?: boolean }
export interface Plot { x: number[]; lines: Line[] }

const HEIGHT = 150;

export class Chart {
  readonly element: HTMLElement;
  private readonly body = el("div", { class: "plot" });
  private readonly legend = el("p", { class: "legend" });
  private plot: uPlot | null = null;
  private shape = "";
  private data: Plot = { x: [], lines: [] };
  private readonly observer: ResizeObserver;
  private width = 0;

  constructor(title: string, private readonly hint: string, private readonly options: { zero?: boolean; log?: boolean; group?: string; xLabel?: () => string } = {}) {
    this.element = el("figure", { class: "chart" }, el("figcaption", {}, el("h3", {}, title), this.legend), this.body);
    this.element.title = hint;
    this.observer = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width === this.width || width === 0) return;
      this.width = width;
      if (this.plot) this.plot.setSize({ width, height: HEIGHT });
      else this.draw();
    });
    this.observer.observe(this.body);
  }

  set(data: Plot): void {
    this.data = data;
    this.draw();
  }
  destroy(): void {
    this.observer.disconnect();
    this.plot?.destroy();
  }
  /** Applies the colors of the current theme. */
  restyle(): void {
    this.shape = "";
    this.draw();
  }

  private columns(): uPlot.AlignedData {
    const columns: (number[] | Float64Array)[] = [this.data.x];
    for (const line of this.data.lines) {
      if (line.min && line.max) columns.push(line.max, line.min);
      if (line.smooth) columns.push(smoothed(line.values));
      columns.push(line.values);
    }
    return columns as unknown as uPlot.AlignedData;
  }

  private draw(): void {
    if (this.width === 0) return;
    const empty = this.data.x.length === 0 || this.data.lines.length === 0;
    const shape = empty ? "empty" : JSON.stringify(this.data.lines.map((l) => [l.label, l.colour, Boolean(l.min), l.smooth]));
    if (shape === this.shape && this.plot) {
      this.plot.setData(this.columns());
      this.caption(null);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plot = null;
    if (empty) {
      this.body.replaceChildren(el("p", { class: "none" }, "no data yet"));
      say(this.legend, "");
      return;
    }
    this.body.replaceChildren();
    this.plot = new uPlot(this.make(), this.columns(), this.body);
    this.body.setAttribute("role", "img");
    this.caption(null);
  }

  private make(): uPlot.Options {
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const line of this.data.lines) {
      if (line.min && line.max) {
        const edge = { stroke: "transparent", width: 0, points: { show: false } };
        bands.push({ series: [series.length, series.length + 1], fill: line.colour + "2e" });
        series.push({ ...edge }, { ...edge });
      }
      if (line.smooth) series.push({ stroke: line.colour, width: 1.8, points: { show: false } });
      // Sparse series (held-out problems) are drawn as points connected by lines.
      const points = { show: this.data.x.length < 2 || sparse(line.values), size: 4 };
      series.push({ spanGaps: true, label: line.label, stroke: line.smooth ? line.colour + "59" : line.colour, width: line.smooth ? 1 : 1.6, points });
    }
    const grid = { stroke: css("--grid"), width: 1 };
    const axis = { stroke: css("--faint"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    return {
      width: this.width, height: HEIGHT, series, bands,
      legend: { show: false },
      cursor: { sync: { key: this.options.group ?? "run" }, y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: {
        x: { time: false },
        y: { range: (_u, low, high) => this.range(low, high) },
      },
      axes: [
        { ...axis, space: 60, size: 24, values: (_u, ticks) => tickLabels(ticks) },
        { ...axis, space: 28, size: 46, values: (_u, ticks) => tickLabels(ticks) },
      ],
      hooks: { setCursor: [(u) => this.caption(u.cursor.idx ?? null)] },
    };
  }

  private range(low: number, high: number): [number, number] {
    if (low == null || high == null) return [0, 1];
    if (this.options.zero && low > 0) low = 0;
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [low === 0 ? 0 : low - room, high + room];
  }

  private caption(at: number | null): void {
    const last = this.data.x.length - 1;
    const i = at ?? last;
    const parts: (Node | string)[] = [];
    for (const line of this.data.lines) {
      const mark = el("i", { class: "mark" });
      mark.style.background = line.colour;
      let k = i;
      if (at === null || sparse(line.values)) while (k > 0 && line.values[k] == null) --k;  // the run ended earlier
      const shown = at === null && line.smooth ? smoothed(line.values)[k] : line.values[k];
      const band = line.min && line.max ? ` (${short(line.min[k])} … ${short(line.max[k])})` : "";
      parts.push(mark, `${line.label} `, el("b", {}, short(shown ?? NaN)), band + "  ");
    }
    this.legend.replaceChildren(...parts);
    const text = this.data.lines.map((l) => `${l.label} ${short(l.values[i])}`).join(", ");
    this.body.setAttribute("aria-label", `${this.hint} At ${short(this.data.x[i])}: ${text}`);
  }
}

/** Centered moving average over a window of a twentieth of the line. It reduces noise without a
 *  shift in time. */
function smoothed(values: number[]): number[] {
  const half = Math.max(1, Math.round(values.length / 40));
  const sums = [0];
  const counts = [0];
  values.forEach((v, i) => {
    sums.push(sums[i] + (v ?? 0));
    counts.push(counts[i] + (v == null ? 0 : 1));
  });
  return values.map((v, i) => {
    const reach = Math.min(half, i, values.length - 1 - i);
    const [from, to] = [i - reach, i + reach + 1];
    return v == null ? v : (sums[to] - sums[from]) / (counts[to] - counts[from]);
  });
}

/** Whether most steps have no value. */
export function sparse(values: number[]): boolean {
  return values.filter((v) => v != null).length < values.length / 2;
}

/** Labeled bars; bars over a limit have another color. */
export function bars(entries: { label: string; value: number; over?: boolean }[], unit: string): HTMLElement {
  const most = Math.max(1e-9, ...entries.map((e) => e.value));
  const total = entries.reduce((sum, e) => sum + e.value, 0);
  const list = el("ol", { class: "bars" });
  for (const e of entries) {
    const bar = el("span", { class: e.over ? "bar over" : "bar" });
    bar.style.width = Math.max(e.value > 0 ? 1 : 0, (e.value / most) * 100) + "%";
    list.append(el("li", {}, el("span", { class: "key" }, e.label), el("span", { class: "track" }, bar),
      el("span", { class: "num" }, `${short(e.value)} ${unit}`.trim(), el("small", {}, total > 0 ? ` ${((e.value / total) * 100).toFixed(0)} %` : ""))));
  }
  return list;
}
