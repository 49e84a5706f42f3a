// Drives the page in a real browser and says what it found as JSON: errors of the page, requests to
// other hosts, findings of axe-core, what is drawn, frames per second while panning.
//   node drive.mjs URL OUT [WIDTHS] [THEMES]      e.g. "http://127.0.0.1:7878/?token=..." shots 1440,390 light
// Needs chromium (CHROMIUM names it), and puppeteer-core and axe-core where node finds them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.PAGE_MODULES ? process.env.PAGE_MODULES + "/x.js" : import.meta.url);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [url, out, widths = "1440,1024,390", themes = "light,dark"] = process.argv.slice(2);
const runs = process.env.PAGE_RUNS?.split(",") ?? [];
mkdirSync(out, { recursive: true });
const found = { errors: [], foreign: [], axe: [], views: {}, overflow: [] };
const host = new URL(url).host;

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"],
  protocolTimeout: 120000,
});
try {
  const page = await browser.newPage();
  page.on("console", (m) => m.type() === "error" && found.errors.push(m.text()));
  page.on("pageerror", (e) => found.errors.push(String(e)));
  page.on("request", (r) => {
    const to = new URL(r.url());
    if (to.protocol !== "data:" && to.protocol !== "file:" && to.host !== host) found.foreign.push(r.url());
  });
  const views = url.startsWith("file:") ? ["run", "cards", "samples", "why", "config"] : ["run", "cards", "samples", "why", "compare"];
  for (const theme of themes.split(",")) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    for (const width of widths.split(",").map(Number)) {
      await page.setViewport({ width, height: width < 600 ? 844 : 900 });
      for (const run of runs.length ? runs : [""]) {
        for (const view of views) {
          const hash = url.startsWith("file:") ? `#/${view}` : `#/${encodeURIComponent(run)}/${view}`;
          await page.goto(url + hash, { waitUntil: "domcontentloaded" });
          await page.evaluate((h) => { location.hash = h; }, hash);
          await page.waitForSelector(".view", { timeout: 15000 });
          await settle(page, view);
          const name = `${run || "run"}-${view}-${width}-${theme}`;
          await page.screenshot({ path: `${out}/${name}.png`, fullPage: width >= 1024 });
          found.views[name] = await describe(page);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          if (wide > 1) found.overflow.push(`${name}: ${wide} px`);
          if (width !== 1024) await check(page, name);
        }
      }
    }
  }
  if (process.env.PAGE_PAN) found.pan = await pan(page, url, process.env.PAGE_PAN);
  if (!url.startsWith("file:")) found.keyboard = await keyboard(page, url, runs[0] ?? "");
} finally {
  await browser.close();
}
writeFileSync(`${out}/found.json`, JSON.stringify(found, null, 1));
console.log(JSON.stringify(found));

async function settle(page, view) {
  const wanted = { run: ".tiles dd", cards: ".heat canvas", samples: "ol.samples", why: ".losses li", compare: ".picks label", config: "pre" }[view];
  await page.waitForSelector(wanted, { timeout: 15000 });
  // Drawn means: the same twice, a quarter of a second apart. A run that goes on is never the same.
  let before = "";
  for (let i = 0; i < 8; ++i) {
    await new Promise((done) => setTimeout(done, 250));
    const now = await page.evaluate(() => document.body.innerHTML.length + ":" + [...document.querySelectorAll("canvas")].map((c) => c.toDataURL().length).join());
    if (now === before) return;
    before = now;
  }
}
async function describe(page) {
  return page.evaluate(() => {
    const colours = (canvas) => {
      const g = canvas.getContext("2d");
      const data = g.getImageData(0, 0, canvas.width, canvas.height).data;
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4 * 7) if (data[i + 3] > 200) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return seen.size;
    };
    return {
      title: document.title,
      canvases: [...document.querySelectorAll("canvas")].map(colours),
      tiles: [...document.querySelectorAll(".tiles > div")].map((t) => t.innerText.replaceAll("\n", " ")),
      badge: document.querySelector(".badge")?.textContent,
    };
  });
}
async function check(page, name) {
  await page.evaluate(axe + ";0");
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const v of result.violations)
    found.axe.push({ view: name, rule: v.id, impact: v.impact, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120) + " " + (n.any[0]?.message ?? "")) });
}
/** Frames per second while the time line of a run is dragged for two seconds. */
async function pan(page, url, run) {
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto("about:blank");
  const begin = Date.now();
  await page.goto(`${url}#/${encodeURIComponent(run)}/cards`, { waitUntil: "domcontentloaded" });
  await page.waitForFunction(() => {
    const c = document.querySelector(".timeline canvas");
    if (!c || c.width < 100) return false;
    const d = c.getContext("2d").getImageData(Math.floor(c.width / 2), 0, Math.floor(c.width / 4), 40).data;
    for (let i = 3; i < d.length; i += 4) if (d[i] > 200) return true;
    return false;
  }, { timeout: 30000, polling: 20 });
  const opened = Date.now() - begin;
  return page.evaluate(async (opened) => {
    const canvas = document.querySelector(".timeline canvas");
    for (let i = 0; i < 3; ++i) canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    await new Promise((done) => setTimeout(done, 800));
    const box = canvas.getBoundingClientRect();
    const at = (type, x) => canvas.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: box.top + 20, pointerId: 1, bubbles: true }));
    canvas.setPointerCapture = () => {};
    at("pointerdown", box.left + 700);
    const times = [];
    let x = 700;
    await new Promise((done) => {
      const step = (t) => {
        times.push(t);
        x += Math.sin(times.length / 20) * 12;
        at("pointermove", box.left + x);
        if (times.length < 120) requestAnimationFrame(step); else done();
      };
      requestAnimationFrame(step);
    });
    at("pointerup", box.left + x);
    const gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
    return { opened_ms: opened, frames_per_s: (times.length - 1) / ((times.at(-1) - times[0]) / 1000), p95_ms: gaps[Math.floor(gaps.length * 0.95)] };
  }, opened);
}
/** From the top of the page by Tab and Enter alone: to the view of cards, and a word of the map. */
async function keyboard(page, url, run) {
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${url}#/${encodeURIComponent(run)}/run`, { waitUntil: "domcontentloaded" });
  await settle(page, "run");
  const focus = () => page.evaluate(() => `${document.activeElement?.tagName}:${document.activeElement?.textContent?.slice(0, 20)}`);
  const seen = [];
  for (let i = 0; i < 12; ++i) {
    await page.keyboard.press("Tab");
    seen.push(await focus());
    if (seen.at(-1) === "A:cards") break;
  }
  await page.keyboard.press("Enter");
  await page.waitForSelector(".heat canvas");
  await settle(page, "cards");
  for (let i = 0; i < 14; ++i) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement?.parentElement?.className === "heat")) break;
  }
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  return { path: seen, note: await page.evaluate(() => document.querySelector(".heat .note")?.textContent), line: await page.evaluate(() => document.querySelector(".timeline .note")?.textContent) };
}
