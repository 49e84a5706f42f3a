// A map with one cell per card (1 to 1536): its state, busy share or share of filled slots.
import { BUSY, STATES, type Live, type State } from "./data";
import { css, el, percent } from "./format";
import { colour } from "./states";

export type Shade = "state" | "busy" | "slots";
interface Cell { card: number; line: number }

/** Mixes two colors of the form #rrggbb. */
function mix(a: string, b: string, share: number): string {
  const part = (i: number) => {
    const of = (c: string) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
    return Math.round(of(a) + (of(b) - of(a)) * share).toString(16).padStart(2, "0");
  };
  return "#" + part(0) + part(1) + part(2);
}

export class HeatMap {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: "0", role: "application" });
  private readonly note = el("p", { class: "note", "aria-live": "polite" });
  private cells: Cell[] = [];
  private live: Live | null = null;
  private shade: Shade = "state";
  private columns = 1;
  private size = 12;
  private at = -1;
  private readonly observer = new ResizeObserver(() => this.draw());

  constructor(private readonly onChoose: (actors: number[]) => void) {
    this.element = el("div", { class: "heat" }, this.canvas, this.note);
    this.observer.observe(this.element);
    this.canvas.addEventListener("pointermove", (e) => this.point(this.under(e)));
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("click", (e) => this.choose(this.under(e)));
    this.canvas.addEventListener("keydown", (e) => this.key(e));
  }
  destroy(): void {
    this.observer.disconnect();
  }
  set(live: Live, shade: Shade): void {
    this.live = live;
    this.shade = shade;
    this.cells = [];
    live.cards.forEach((line, index) => {
      for (let i = 0; i + 1 < line.cards.length; i += 2)
        for (let n = 0; n < line.cards[i + 1]; ++n) this.cells.push({ card: line.cards[i] + n, line: index });
    });
    this.cells.sort((a, b) => a.card - b.card);
    this.draw();
  }

  private shares(line: number) {
    const cards = this.live!.cards[line];
    return this.live!.over ? cards.whole : cards.recent;
  }
  private dominant(line: number): State {
    const shares = this.shares(line);
    return STATES.reduce((best, s) => ((shares[s] ?? 0) > (shares[best] ?? 0) ? s : best), STATES[STATES.length - 1]);
  }
  private busy(line: number): number {
    const shares = this.shares(line);
    return STATES.reduce((sum, s) => sum + (BUSY.has(s) ? shares[s] ?? 0 : 0), 0);
  }
  private slots(line: number): number | null {
    const engines = this.live!.cards[line].actors.map((a) => this.live!.actors[a]).filter((a) => a?.role === "rollout" && a.capacity > 0);
    if (engines.length === 0 || this.live!.over) return null;
    return engines.reduce((sum, a) => sum + a.load / a.capacity, 0) / engines.length;
  }
  private fill(line: number): string {
    if (this.shade === "state") return colour(this.dominant(line));
    const share = this.shade === "busy" ? this.busy(line) : this.slots(line);
    return share === null ? css("--empty") : mix(css("--heat-0"), css("--heat-1"), Math.min(1, share));
  }

  private draw(): void {
    const width = this.element.clientWidth;
    if (!this.live || width === 0) return;
    const n = this.cells.length;
    // With enough cards, each node of eight cards is a column.
    const rows = n <= 8 ? 1 : n <= 1024 ? 8 : 16;
    this.columns = Math.ceil(n / rows);
    this.size = Math.max(4, Math.min(n <= 8 ? 96 : 26, Math.floor(width / this.columns)));
    if (this.columns * this.size > width) this.columns = Math.floor(width / this.size);
    const height = Math.ceil(n / this.columns) * this.size;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = this.columns * this.size * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = this.columns * this.size + "px";
    this.canvas.style.height = height + "px";
    this.canvas.setAttribute("aria-label", `Map of ${n} cards; arrow keys move, Enter shows a card on the timeline`);
    const g = this.canvas.getContext("2d")!;
    g.scale(ratio, ratio);
    g.clearRect(0, 0, width, height);
    const colours = this.live.cards.map((_, line) => this.fill(line));
    const gap = this.size > 8 ? 2 : 1;
    this.cells.forEach((cell, i) => {
      const [x, y] = this.place(i);
      g.fillStyle = colours[cell.line];
      g.fillRect(x, y, this.size - gap, this.size - gap);
      if (this.shade === "state" && this.size >= 20) this.stack(g, x, y, this.size - gap, cell.line);
      if (n <= 64 && this.size >= 20) {
        g.fillStyle = css("--on-cell");
        g.font = "600 11px system-ui, sans-serif";
        g.fillText(String(cell.card), x + 4, y + 14);
      }
    });
    if (this.at >= 0 && this.at < n) {
      const [x, y] = this.place(this.at);
      g.strokeStyle = css("--text");
      g.lineWidth = 2;
      g.strokeRect(x - 0.5, y - 0.5, this.size - gap + 1, this.size - gap + 1);
    }
    if (this.at < 0 && !this.note.textContent) this.say(-1);
  }
  /** If there is room: all states of the card, stacked from the bottom. */
  private stack(g: CanvasRenderingContext2D, x: number, y: number, size: number, line: number): void {
    const shares = this.shares(line);
    let top = y + size;
    for (const state of STATES) {
      const height = (shares[state] ?? 0) * size;
      if (height <= 0) continue;
      top -= height;
      g.fillStyle = colour(state);
      g.fillRect(x, top, size, height + 0.5);
    }
  }
  /** Position of a cell; cards of a node are below each other. */
  private place(i: number): [number, number] {
    const rows = Math.ceil(this.cells.length / this.columns);
    return [Math.floor(i / rows) * this.size, (i % rows) * this.size];
  }
  private under(e: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const rows = Math.ceil(this.cells.length / this.columns);
    const row = Math.floor((e.clientY - box.top) / this.size);
    const i = Math.floor((e.clientX - box.left) / this.size) * rows + row;
    return row < rows && i >= 0 && i < this.cells.length ? i : -1;
  }
  private point(i: number): void {
    if (i === this.at) return;
    this.at = i;
    this.draw();
    this.say(i);
  }
  private say(i: number): void {
    if (i < 0) {
      this.note.textContent = this.live!.over ? "Shares over the whole run. Point at a card for details." : "Shares over the last ten seconds. Point at a card for details.";
      return;
    }
    const line = this.cells[i].line;
    const shares = this.shares(line);
    const parts = STATES.filter((s) => (shares[s] ?? 0) >= 0.01).map((s) => `${s} ${percent(shares[s]!)}`);
    const names = this.live!.cards[line].actors.map((a) => this.live!.actors[a]);
    const slots = this.slots(line);
    const on = names.find((a) => a.on)?.on;
    const host = this.live!.cards[line].host;
    this.note.textContent = `card ${this.cells[i].card}${host ? ` of ${host}` : ""}: ${names.map((a) => a.name).join(", ")} · ${parts.join(", ")}` +
      (slots === null ? "" : ` · ${percent(slots)} of its slots`) + (on && !this.live!.over ? ` · ${on}` : "");
  }
  private choose(i: number): void {
    if (i >= 0) this.onChoose(this.live!.cards[this.cells[i].line].actors);
  }
  private key(e: KeyboardEvent): void {
    const rows = Math.ceil(this.cells.length / this.columns);
    const by = { ArrowRight: rows, ArrowLeft: -rows, ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by !== undefined) this.point(Math.max(0, Math.min(this.cells.length - 1, this.at + by)));
    else if (e.key === "Enter") this.choose(this.at);
    else return;
    e.preventDefault();
  }
}
