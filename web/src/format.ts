// Human-readable numbers and times, and helpers that create elements.

export function short(n: number): string {
  if (!Number.isFinite(n)) return "–";
  const a = Math.abs(n);
  const [unit, by] = a >= 1e12 ? ["T", 1e12] : a >= 1e9 ? ["G", 1e9] : a >= 1e6 ? ["M", 1e6] : a >= 1e4 ? ["k", 1e3] : ["", 1];
  const v = n / (by as number);
  const digits = unit ? (Math.abs(v) >= 100 ? 0 : 1) : a >= 100 || Number.isInteger(n) ? 0 : a >= 1 ? 2 : 3;
  return v.toFixed(digits) + unit;
}
/** Axis labels: one unit for all, and as many digits as each tick needs. */
export function tickLabels(ticks: number[]): string[] {
  const most = Math.max(...ticks.map(Math.abs));
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : most;
  const [unit, by] = most >= 1e12 ? ["T", 1e12] : most >= 1e9 ? ["G", 1e9] : most >= 1e6 ? ["M", 1e6] : most >= 1e4 ? ["k", 1e3] : ["", 1];
  const exact = (label: string, tick: number) => Math.abs(Number(label) - tick) <= step * 1e-6;
  const labels = step > 0 && step < 1e-3 ? (digits: number) => ticks.map((t) => t.toExponential(digits))
    : (digits: number) => ticks.map((t) => (t / (by as number)).toFixed(digits));
  const scale = step > 0 && step < 1e-3 ? 1 : (by as number);
  let digits = 0;
  while (digits < 9 && !labels(digits).every((label, i) => exact(String(Number(label) * scale), ticks[i]))) ++digits;
  return labels(digits).map((label, i) => (ticks[i] === 0 ? "0" : label + (scale === 1 ? "" : unit)));
}
export const figure = (n: number | null | undefined, digits = 3) => (n == null || !Number.isFinite(n) ? "–" : n.toFixed(digits));
export const percent = (n: number, digits = 0) => (Number.isFinite(n) ? (n * 100).toFixed(digits) + " %" : "–");
export const bytes = (n: number) => (n >= 1 << 30 ? (n / 2 ** 30).toFixed(1) + " GiB" : (n / 2 ** 20).toFixed(0) + " MiB");

/** 93 -> "1:33", 7265 -> "2 h 01 min", 0.02 -> "20 ms". */
export function span(s: number): string {
  if (!Number.isFinite(s)) return "–";
  if (s < 0.001) return (s * 1e6).toFixed(0) + " µs";
  if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
  if (s < 60) return s.toFixed(s < 10 ? 2 : 1) + " s";
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return (s / 86400).toFixed(1) + " days";
}

type Child = Node | string | null | undefined | false;
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string | boolean | ((e: never) => void)> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false) e.setAttribute(name, value);
  }
  for (const child of children) if (child) e.append(child);
  return e;
}
export function fill(e: Element, ...children: Child[]): void {
  e.replaceChildren(...children.filter((c): c is Node | string => Boolean(c)));
}
export const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** Sets text only if it differs, which avoids a new layout. */
export function say(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
