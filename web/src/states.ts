// The color of each state, from the style sheet, which has light and dark colors.
import { css, el } from "./format";
import { STATES, type Shares, type State } from "./data";

let known: Record<string, string> = {};
export const colour = (state: State): string => (known[state] ??= css("--s-" + state) || "#888");
export function forgetColours(): void {
  known = {};
}

/** One bar divided by state. Screen readers read a list of shares. */
export function shareBar(shares: Shares): HTMLElement {
  const present = STATES.filter((s) => (shares[s] ?? 0) >= 0.0005);
  const bar = el("span", { class: "share", role: "img", "aria-label": present.map((s) => `${s} ${((shares[s] ?? 0) * 100).toFixed(1)} %`).join(", ") });
  for (const state of present) {
    const part = el("i", { class: "s-" + state, title: `${state} ${((shares[state] ?? 0) * 100).toFixed(1)} %` });
    part.style.flexGrow = String(shares[state]);
    bar.append(part);
  }
  return bar;
}
export function stateLegend(states: readonly State[]): HTMLElement {
  return el("ul", { class: "states", "aria-label": "Colors of states" },
    ...states.map((s) => el("li", {}, el("i", { class: "mark s-" + s }), s)));
}
