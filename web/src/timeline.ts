// One row per actor with its states over time. The wheel (or + and -) zooms, dragging (or the arrow
// keys) pans, a click (or Enter) describes an interval. Each view is drawn from one answer of the
// server, whose resolution follows the zoom.
import { source, type Actor, type State, type Timeline } from "./data";
import { css, el, span } from "./format";
import { colour } from "./states";

interface Row { begin: number[]; end: number[]; name: number[] }
const LABEL = 104;
const AXIS = 20;

export class TimelineView {
  readonly element: HTMLElement;
  private readonly scroller = el("div", { class: "scroller" });
  private readonly canvas = el("canvas", { tabindex: "0", role: "application" });
  private readonly spacer = el("div");
  private readonly note = el("p", { class: "note", "aria-live": "polite" });
  private rows: Row[] = [];
  private names: [State, string][] = [];
  private actors: Actor[] = [];
  private loaded: [number, number, number] = [0, 0, 0];  // from, to, and the requested width
  private from = 0;
  private to = 1;
  private end = 1;
  private live = false;
  private following = true;
  private row = -1;
  private chosen: [number, number] | null = null;
  private drag: { x: number; y: number; from: number; moved: boolean } | null = null;
  private asked = 0;
  private pending = false;
  private timer = 0;
  private readonly observer = new ResizeObserver(() => this.draw());

  constructor(private readonly run: string) {
    const button = (text: string, label: string, on: () => void) => el("button", { type: "button", "aria-label": label, title: label, onclick: on }, text);
    const tools = el("div", { class: "tools" },
      button("−", "Zoom out", () => this.zoom(2)), button("+", "Zoom in", () => this.zoom(0.5)),
      button("←", "Earlier", () => this.pan(-0.5)), button("→", "Later", () => this.pan(0.5)),
      button("All", "All: show the whole run", () => this.all()));
    this.scroller.append(this.canvas, this.spacer);
    this.element = el("div", { class: "timeline" }, tools, this.scroller, this.note);
    this.note.textContent = "Scroll to zoom, drag to pan, click an interval for details.";
    this.canvas.setAttribute("aria-label", "Timeline of the actors; plus and minus zoom, left and right pan, up and down choose an actor, Enter describes its state in the middle");
    this.observer.observe(this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.canvas.addEventListener("pointerdown", (e) => this.down(e));
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    this.canvas.addEventListener("pointerup", (e) => this.up(e));
    this.canvas.addEventListener("pointercancel", () => (this.drag = null));
    this.canvas.addEventListener("keydown", (e) => this.key(e));
  }
  destroy(): void {
    this.observer.disconnect();
    clearTimeout(this.timer);
  }

  set(actors: Actor[], end: number, live: boolean): void {
    const first = this.actors.length === 0;
    this.actors = actors;
    this.live = live;
    const was = this.end;
    this.end = Math.max(end, 1e-3);
    if (first) this.all();
    else if (this.following && this.end !== was) {
      const width = this.to - this.from;
      this.to = this.end;
      this.from = this.from <= 0 ? 0 : Math.max(0, this.end - width);
      this.load(true);
    }
    this.draw();
  }
  choose(actors: number[]): void {
    this.row = actors[0] ?? -1;
    if (this.row >= 0) this.scroller.scrollTop = Math.max(0, this.row * this.height() - 40);
    this.draw();
    this.element.scrollIntoView({ block: "nearest" });
    if (this.row >= 0) this.read(this.row, (this.from + this.to) / 2);
  }

  private width = () => Math.max(1, this.scroller.clientWidth - LABEL);
  private height = () => (this.actors.length > 200 ? 4 : this.actors.length > 64 ? 8 : this.actors.length > 24 ? 14 : 20);
  private time = (x: number) => this.from + ((x - LABEL) / this.width()) * (this.to - this.from);

  private all(): void {
    this.from = 0;
    this.to = this.end;
    this.following = true;
    this.load();
    this.draw();
  }
  private zoom(by: number, around = (this.from + this.to) / 2): void {
    const width = Math.min(this.end, Math.max(0.01, (this.to - this.from) * by));
    const share = (around - this.from) / (this.to - this.from);
    this.look(around - share * width, width);
  }
  private pan(by: number): void {
    const width = this.to - this.from;
    this.look(this.from + by * width, width);
  }
  private look(from: number, width: number): void {
    this.from = Math.max(0, Math.min(from, this.end - width));
    this.to = this.from + width;
    this.following = this.to >= this.end * 0.999;
    this.draw();
    this.load();
  }

  /** Requests missing data: an interval three times as wide as the view. */
  private load(fresh = false): void {
    const width = this.to - this.from;
    const [from, to, asked] = this.loaded;
    const inside = this.from >= from && this.to <= to && width > asked / 4 && width < asked * 2;
    if (inside && !fresh) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.fetch(), this.pending ? 200 : fresh ? 400 : 60);
  }
  private async fetch(): Promise<void> {
    if (this.pending) return this.load();
    this.pending = true;
    const ticket = ++this.asked;
    const width = this.to - this.from;
    const from = Math.max(0, this.from - width);
    const to = Math.min(this.end, this.to + width);
    try {
      const answer = await source.timeline(this.run, from, to);
      if (ticket === this.asked) {
        this.loaded = [from, to >= this.end ? Infinity : to, width];
        this.take(answer);
      }
    } catch { /* the stream reports a lost connection */ }
    this.pending = false;
    this.draw();
  }
  private take(answer: Timeline): void {
    this.rows = this.actors.map(() => ({ begin: [], end: [], name: [] }));
    this.names = [];
    const known = new Map<string, number>();
    for (const block of answer.blocks) {
      const ids = block.names.map((name) => {
        const key = name.join("\0");
        let id = known.get(key);
        if (id === undefined) known.set(key, (id = this.names.push(name) - 1));
        return id;
      });
      for (const track of block.t) {
        const row = this.rows[track[0]];
        if (!row) continue;
        let at = track[1];
        for (let i = 2; i + 1 < track.length; i += 2) {
          const begin = at * answer.width_s;
          at += track[i];
          const last = row.end.length - 1;
          if (last >= 0 && row.name[last] === ids[track[i + 1]] && row.end[last] >= begin - 1e-9) row.end[last] = at * answer.width_s;
          else row.begin.push(begin), row.end.push(at * answer.width_s), row.name.push(ids[track[i + 1]]);
        }
      }
    }
  }

  private draw(): void {
    const total = this.scroller.clientWidth;
    if (total === 0 || this.actors.length === 0) return;
    const h = this.height();
    const seen = Math.min(this.actors.length * h, 460);
    const ratio = devicePixelRatio || 1;
    const [w, full] = [Math.round(total * ratio), Math.round((seen + AXIS) * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== full) {
      this.canvas.width = w;
      this.canvas.height = full;
      this.canvas.style.width = total + "px";
      this.canvas.style.height = seen + AXIS + "px";
    }
    this.scroller.style.maxHeight = seen + AXIS + "px";
    this.spacer.style.height = Math.max(0, this.actors.length * h - seen) + "px";
    const g = this.canvas.getContext("2d")!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, total, seen + AXIS);
    const top = this.scroller.scrollTop;
    const first = Math.floor(top / h);
    const last = Math.min(this.actors.length, Math.ceil((top + seen) / h));
    g.save();
    g.beginPath();
    g.rect(0, 0, total, seen);
    g.clip();
    for (let i = first; i < last; ++i) this.drawRow(g, i, i * h - top, h);
    g.restore();
    this.drawLabels(g, first, last, top, h);
    this.drawAxis(g, seen);
  }
  private drawRow(g: CanvasRenderingContext2D, i: number, y: number, h: number): void {
    const row = this.rows[i];
    if (!row) return;
    const scale = this.width() / (this.to - this.from);
    const thick = h > 8 ? h - 3 : h > 4 ? h - 1 : h;
    let low = 0;
    for (let high = row.end.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (row.end[middle] < this.from) low = middle + 1;
      else high = middle;
    }
    let drawn = LABEL;  // draws each half pixel once
    for (let k = low; k < row.begin.length && row.begin[k] < this.to; ++k) {
      const a = Math.max(LABEL, LABEL + (row.begin[k] - this.from) * scale);
      const b = LABEL + (row.end[k] - this.from) * scale;
      if (b < drawn + 0.5) continue;
      g.fillStyle = colour(this.names[row.name[k]][0]);
      g.fillRect(Math.max(a, drawn), y, b - Math.max(a, drawn), thick);
      drawn = b;
    }
    if (this.live && this.actors[i]) {  // the current state, until the server has sent the interval
      const known = row.end.length ? row.end[row.end.length - 1] : 0;
      const a = Math.max(LABEL, LABEL + (known - this.from) * scale);
      const b = LABEL + (this.end - this.from) * scale;
      if (b > a) {
        g.globalAlpha = 0.45;
        g.fillStyle = colour(this.actors[i].state);
        g.fillRect(a, y, b - a, thick);
        g.globalAlpha = 1;
      }
    }
    if (this.chosen && this.chosen[0] === i && h > 4) {
      const k = this.chosen[1];
      const a = LABEL + ((row.begin[k] ?? 0) - this.from) * scale;
      const b = LABEL + ((row.end[k] ?? 0) - this.from) * scale;
      g.strokeStyle = css("--text");
      g.lineWidth = 1.5;
      g.strokeRect(a, y + 0.75, Math.max(2, b - a), thick - 1.5);
    }
  }
  private drawLabels(g: CanvasRenderingContext2D, first: number, last: number, top: number, h: number): void {
    g.clearRect(0, 0, LABEL - 1, 460);
    g.font = "11px system-ui, sans-serif";
    const every = Math.max(1, Math.ceil(12 / h));
    for (let i = first; i < last; ++i) {
      if (i % every !== 0 && i !== this.row) continue;
      g.fillStyle = i === this.row ? css("--accent") : css("--faint");
      let name = this.actors[i].name;
      while (name.length > 3 && g.measureText(name).width > LABEL - 14) name = name.slice(0, -2) + "…";
      g.fillText(name, 2, i * h - top + Math.min(h, 20) / 2 + 3);
      if (i === this.row) g.fillRect(LABEL - 6, i * h - top, 3, Math.max(3, h - 3));
    }
  }
  private drawAxis(g: CanvasRenderingContext2D, y: number): void {
    g.fillStyle = css("--faint");
    const width = this.to - this.from;
    const raw = width / Math.max(2, this.width() / 110);
    const power = 10 ** Math.floor(Math.log10(raw));
    const nice = raw < 1 ? [1, 2, 5, 10].map((m) => m * power) : [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
    const step = nice.find((s) => s >= raw) ?? Math.ceil(raw / 864000) * 864000;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = LABEL + ((t - this.from) / width) * this.width();
      g.fillRect(Math.round(x), y, 1, 4);
      const text = label(t, step);
      if (x + 6 + g.measureText(text).width < LABEL + this.width()) g.fillText(text, x + 3, y + 14);
    }
  }

  private read(row: number, time: number): void {
    const r = this.rows[row];
    const k = r ? r.end.findIndex((end, i) => end > time && r.begin[i] <= time) : -1;
    this.chosen = k < 0 ? null : [row, k];
    this.draw();
    if (k < 0) {
      const actor = this.actors[row];
      if (actor && this.live) this.note.textContent = `${actor.name}: ${actor.state} now${actor.on ? `: ${actor.on}` : ""}`;
      return;
    }
    const [state, on] = this.names[r.name[k]];
    this.note.textContent = `${this.actors[row].name} · ${state} for ${span(r.end[k] - r.begin[k])} from ${span(r.begin[k])}` +
      (on ? ` · ${state.startsWith("wait") ? "waited for " : ""}${on}` : "");
  }
  private wheel(e: WheelEvent): void {
    if (e.shiftKey || (Math.abs(e.deltaX) > Math.abs(e.deltaY))) this.pan((e.deltaX || e.deltaY) / 1000);
    else if (this.actors.length * this.height() > 460 && !e.ctrlKey && e.offsetX < LABEL) return;
    else this.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, e.deltaY / 400))), this.time(e.offsetX));
    e.preventDefault();
  }
  private down(e: PointerEvent): void {
    this.drag = { x: e.clientX, y: e.clientY, from: this.from, moved: false };
    this.canvas.setPointerCapture(e.pointerId);
  }
  private move(e: PointerEvent): void {
    if (!this.drag) return;
    const by = e.clientX - this.drag.x;
    if (Math.abs(by) > 3) this.drag.moved = true;
    if (this.drag.moved) this.look(this.drag.from - (by / this.width()) * (this.to - this.from), this.to - this.from);
  }
  private up(e: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.moved) return;
    this.row = Math.floor((e.offsetY + this.scroller.scrollTop) / this.height());
    if (this.row < this.actors.length) this.read(this.row, this.time(e.offsetX));
  }
  private key(e: KeyboardEvent): void {
    const row = (by: number) => {
      this.row = Math.max(0, Math.min(this.actors.length - 1, this.row + by));
      this.draw();
    };
    const keys: Record<string, () => void> = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.all(),
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), ArrowUp: () => row(-1), ArrowDown: () => row(1),
      Enter: () => this.read(Math.max(0, this.row), (this.from + this.to) / 2),
    };
    if (!keys[e.key]) return;
    keys[e.key]();
    e.preventDefault();
  }
}

function label(t: number, step: number): string {
  if (step >= 86400) return (t / 86400).toFixed(0) + " d";
  if (step >= 3600) return (t / 3600).toFixed(step % 3600 ? 1 : 0) + " h";
  if (step >= 60) return (t / 60).toFixed(step % 60 ? 1 : 0) + " min";
  return t.toFixed(step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step)))) + " s";
}
