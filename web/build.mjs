// Builds web/dist from web/src: one script, one style sheet, one document, all minified.
//   npm ci && npm run check && npm run build
// dist/ is committed, so that the program builds without npm. sources.txt in it has a hash of each
// source file, and a test compares them.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url).pathname;
await build({
  entryPoints: { page: here + "src/main.ts" },
  outdir: here + "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "/* With uPlot 1.6.32, (c) Leon Sorokin, MIT licence. Made from web/src. */" },
});
copyFileSync(here + "src/index.html", here + "dist/index.html");
const files = ["build.mjs", "package.json", ...readdirSync(here + "src").map((f) => "src/" + f)].sort();
const lines = files.map(
  (f) => createHash("sha256").update(readFileSync(here + f)).digest("hex") + "  " + f + "\n",
);
writeFileSync(here + "dist/sources.txt", lines.join(""));
