// Types of the server's answers. In an HTML report the data is embedded in the page.

export const STATES = [
  "train", "decode", "prefill", "reference", "reward", "evaluate", "weight-sync", "switch",
  "wait-data", "wait-weights", "wait-quota", "wait-tools", "idle", "down",
] as const;
export type State = (typeof STATES)[number];
export const BUSY = new Set<State>(["train", "decode", "prefill", "reference", "reward", "evaluate"]);
export type Shares = Partial<Record<State, number>>;

export interface RunInfo {
  id: string; state: RunState; name: string; simulated: boolean; began: number; wall_s: number;
  steps: number; steps_wanted: number; reward: number | null; trained_per_s: number; busy: number;
  cards: number; alarms: number;
}
export type RunState = "running" | "finished" | "stopped" | "failed" | "lost" | "unknown";
export interface Actor {
  name: string; role: string; state: State; on: string; load: number; capacity: number; restarts: number;
}
export interface CardLine { cards: number[]; actors: number[]; recent: Shares; whole: Shares; host?: string }
export interface Alarm { kind: string; time: number; step: number; text: string }
export interface Wait {
  role: string; state: State; on: string; s: number; share: number; longest_s: number;
  longest_at_s: number; longest_on: string;
}
export interface Summary {
  ok: boolean; stopped: boolean; reason: string; name: string; seed: number; steps: number;
  wall_s: number; simulated: boolean; cards: number; log_hash: string; wasted_tokens: number;
  tokens: Record<string, number>;
  utilization: { busy: number; states: Shares };
  staleness: { bound: number; max: number; mean: number; histogram: Record<string, number>; token_mean: number };
  groups: { trained: number; filtered: number; failed: number; evicted: number; responses_failed: number; last_failure: string };
  reward: { first: number | null; last: number | null; best: number | null };
  lengths: { mean: number; p50: number; p99: number; max: number };
  waits: Wait[];
  slots: { slots: number; occupancy: number; while_serving: number };
  mfu?: { mfu: number } | null;
  cost?: { price: number | null; tokens_per_price: number | null; kwh: number | null; tokens_per_kwh: number | null } | null;
  restarts: { kind: string; at_s: number; actor: string; reason: string }[];
  checkpoints: { saved: number; failed: number; last: number | null };
  evaluation?: Evaluation | null;
}
export interface EvaluationPoint {
  step: number; at_s: number; seconds: number; pass_1: number; pass_k: number; reward: number; failed: number;
  pass_1_low?: number; pass_1_high?: number; within_noise?: boolean;
}
export interface Evaluation { problems: number; samples: number; card_s: number; share: number; best: EvaluationPoint; points: EvaluationPoint[] }
export interface Live {
  subtitle: string; began: number; updated: number; over: boolean; placement: string; steps: number;
  updates: number; elapsed_s: number; left_s: number | null; rewards: number[];
  recent: { raw: number; trained: number; effective: number };
  queue: { generating: number; scoring: number; ready: number; training: number };
  actors: Actor[]; cards: CardLine[]; alarms: Alarm[];
  slots?: number; slots_held?: number; slots_mean?: number;
  health: { memory_bytes: number; disk_free_bytes: number };
  summary: Summary;
}
export interface Frame { id: string; state: RunState; live: Live | null }
export interface Column { mean: number[]; min?: number[]; max?: number[] }
export interface Metrics {
  stride: number; points: number; from: number; updates: number; step: number[]; time: number[];
  series: Record<string, Column>;
}
export interface Block { b: number; e: number; names: [State, string][]; t: number[][] }
export interface Timeline { level: number; width_s: number; blocks: Block[] }
export interface Sample {
  step: number; group: number; place: number; outcome: string; reason: string; age: number | null;
  v0: number; time: number; prompt: string; answer: string; response: string; reward: number | null;
  rewards: Record<string, number>; length: number; logprob: number;
  segments: { version: number; tokens: number; text: string }[];
}
/** Groups with all their responses. */
export interface Samples { matches: number; reversed: boolean; groups: Sample[][]; why?: string }
export interface Loss {
  what: string; state: State; card_s: number; share: number; most_gain: number; longest_s: number;
  longest_at_s: number; longest_on: string; advice: string; command: string;
  predicted: number | null; predicted_error: number;
}
export interface BusiestCards {
  roles: string[]; cards: number; busy: number; occupied: number; limits: boolean; most_gain: number;
  headline: string; advice: string; command: string;
}
export interface Losses { busiest: BusiestCards | null; losses: Loss[] }

/** A row of the table of metrics. The metrics of a group are the lines of a chart. */
export interface MetricRow { name: string; unit: string; group: string; label: string; doc: string }

interface Report {
  runs: RunInfo[]; frame: Frame; metrics: Metrics; timeline: Timeline; samples: Samples;
  losses: Losses; config: string; certificates: string; table: MetricRow[];
}

/** The embedded data of an HTML report; null if a server answers. */
export const report: Report | null = (() => {
  const text = document.getElementById("temper-report")?.textContent;
  return text ? (JSON.parse(text) as Report) : null;
})();

async function get<T>(path: string, base = "api/runs"): Promise<T> {
  const answer = await fetch(base + path);
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return (await answer.json()) as T;
}
const of = (id: string) => "/" + encodeURIComponent(id);

export const source = {
  table: async () => report?.table ?? get<MetricRow[]>("", "api/metrics"),
  runs: async () => report?.runs ?? get<RunInfo[]>(""),
  frame: async (id: string) => report?.frame ?? get<Frame>(of(id) + "/live"),
  metrics: async (id: string, from = 0) => report?.metrics ?? get<Metrics>(`${of(id)}/metrics?from=${from}`),
  timeline: async (id: string, from: number, to: number) =>
    report?.timeline ?? get<Timeline>(`${of(id)}/timeline?from=${from.toFixed(4)}&to=${to.toFixed(4)}`),
  samples: async (id: string, query: URLSearchParams) =>
    report?.samples ?? get<Samples>(`${of(id)}/samples?${query}`),
  losses: async (id: string) => report?.losses ?? get<Losses>(of(id) + "/losses"),
  config: async (id: string) => {
    if (report) return report.config;
    const answer = await fetch("api/runs" + of(id) + "/config");
    return answer.text();
  },
};

/** Follows a run. The browser reconnects by itself. */
export function follow(id: string, on: (frame: Frame) => void, onLink: (up: boolean) => void): () => void {
  if (report) {
    on(report.frame);
    return () => {};
  }
  const stream = new EventSource("api/runs" + of(id) + "/stream");
  stream.onmessage = (event) => on(JSON.parse(event.data as string) as Frame);
  stream.onopen = () => onLink(true);
  stream.onerror = () => onLink(false);
  return () => stream.close();
}
