// Numbers and times as the page writes them: npm test, in web/.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

const web = new URL("../../web/", import.meta.url);
const esbuild = createRequire(new URL("package.json", web))("esbuild");
const bundle = await esbuild.build({ entryPoints: [new URL("src/format.ts", web).pathname], bundle: true, format: "esm", write: false });
const { tickLabels } = await import("data:text/javascript," + encodeURIComponent(bundle.outputFiles[0].text));

test("each tick of an axis is written exactly, all in one unit", () => {
  for (const [ticks, labels] of [
    [[0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.50", "0.75", "1.00"]],
    [[0, 0.5, 1], ["0", "0.5", "1.0"]],
    [[0, 0.1, 0.2, 0.30000000000000004], ["0", "0.1", "0.2", "0.3"]],
    [[0.125, 0.25, 0.375], ["0.125", "0.250", "0.375"]],
    [[0, 2.5, 5, 7.5], ["0", "2.5", "5.0", "7.5"]],
    [[-0.05, 0, 0.05], ["-0.05", "0", "0.05"]],
    [[0, 100, 200], ["0", "100", "200"]],
    [[0, 2500, 5000, 7500], ["0", "2500", "5000", "7500"]],
    [[0, 2500, 5000, 7500, 10000], ["0", "2.5k", "5.0k", "7.5k", "10.0k"]],
    [[1000000, 1050000, 1100000], ["1.00M", "1.05M", "1.10M"]],
    [[10000, 10025, 10050], ["10.000k", "10.025k", "10.050k"]],
    [[0, 0.00025, 0.0005], ["0", "2.5e-4", "5.0e-4"]],
    [[0, 2e-9], ["0", "2e-9"]],
    [[7], ["7"]],
    [[0], ["0"]],
  ])
    assert.deepEqual(tickLabels(ticks), labels, String(ticks));
});

test("no two ticks of an axis look the same", () => {
  for (const step of [1e-9, 2.5e-5, 0.001, 0.0025, 0.02, 0.25, 1, 2.5, 50, 2500, 25000, 2.5e7, 1e13])
    for (const first of [0, -3 * step, 40 * step]) {
      const labels = tickLabels([0, 1, 2, 3, 4].map((i) => first + i * step));
      assert.equal(new Set(labels).size, 5, labels.join());
    }
});
