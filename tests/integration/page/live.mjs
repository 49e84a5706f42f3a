// Watches a run on the page without ever reloading it, and prints each state that it shows:
//   node live.mjs URL RUN      "running 12", "lost 40", "running 41", "finished 400"
// Ends with the run. Status 1: the page was loaded anew, or had an error.
import { createRequire } from "node:module";

const require = createRequire(process.env.PAGE_MODULES ? process.env.PAGE_MODULES + "/x.js" : import.meta.url);
const puppeteer = require("puppeteer-core");
const [url, run] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
let status = 0;
try {
  const page = await browser.newPage();
  page.on("pageerror", (e) => { console.log("error " + e); status = 1; });
  await page.goto(`${url}#/${run}/run`, { waitUntil: "domcontentloaded" });
  await page.evaluate(() => { window.neverReloaded = true; });
  let shown = "";
  for (const end = Date.now() + 240000; Date.now() < end && shown !== "finished"; ) {
    const [badge, step, kept] = await page.evaluate(() => [
      document.querySelector(".badge")?.textContent, document.querySelector(".tiles dd")?.textContent, window.neverReloaded]);
    if (!kept) status = 1;
    if (badge && badge !== shown) console.log(`${(shown = badge)} ${step ?? 0}`);
    await new Promise((done) => setTimeout(done, 100));
  }
} finally {
  await browser.close();
}
process.exit(status);
