"""Makes an example of a change in a copy of the tree, builds it, and checks that it works everywhere.

Imported by change_cost, which prints the count. The copy and its build folder stay in build/change_cost,
so that a second try compiles only what is new. A first one takes as long as a build of the programs.
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

# The file, a line of it, and the lines that follow it from then on.
METRIC = [
    ("orchestrator/metrics/update_history.hpp",
     "  std::uint64_t groups = 0;\n",
     "  std::uint64_t example_count = 0;  ///< An example.\n"),
    ("orchestrator/metrics/run_metrics.cpp",
     "  ++update.batch.groups;\n",
     "  ++update.batch.example_count;\n"),
    ("orchestrator/metrics/metric_table.cpp",
     "constexpr auto kTable = std::to_array<Metric>({\n",
     """    {.name = "example_count",
     .unit = "groups",
     .doc = "An example of a metric.",
     .place = {"Examples", "example"},
     .names = {"example/trl"},
     .value = [](Line l) { return number(l.update.batch.example_count); }},
"""),
]
NAME = "example_count"
GENERATED = "MetricNames.*"  # the tests that rewrite the files made from the table
STEPS = 3
PRESET = "nolab"  # the least that runs a job
TARGETS = ("temper", "temper-worker", "test_watch")


def copy(root, names, to):
    """Makes `to` hold these files of `root`, and no others outside build/. Equal files keep their time."""
    for name in names:
        source, target = root / name, to / name
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in sorted(to.rglob("*"), reverse=True):
        name = path.relative_to(to)
        if path.is_file() and name.parts[0] != "build" and str(name) not in names:
            path.unlink()


def apply(changes, folder):
    for name, line, added in changes:
        path = folder / name
        text = path.read_text()
        if text.count(line) != 1:
            sys.exit(f"change_cost: {name}: expected one line {line.strip()!r}, found {text.count(line)}")
        path.write_text(text.replace(line, line + added))


def run(folder, *words, **environment):
    print(f"$ {' '.join(map(str, words))}", flush=True)
    done = subprocess.run(list(map(str, words)), cwd=folder, env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-4000:]}\nchange_cost: the command above ended with {done.returncode}")
    return done.stdout


def served(temper, run_dir, paths):
    """What `temper serve` answers for each path."""
    server = subprocess.Popen([temper, "serve", run_dir, "--address", "0"], stdout=subprocess.PIPE, text=True)
    try:
        url, token = re.search(r"(http://[^/]+)/\S*token=(\w+)", server.stdout.readline()).groups()
        answers = []
        for path in paths:
            request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                answers.append(answer.read().decode())
        return answers
    finally:
        server.terminate()
        server.wait()


def module_of(path):
    """The module alone: its package needs msgpack."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs_of(folder, temper):
    """Each output of a short run, and whether it shows the metric."""
    out = folder / "build/change_cost_run"
    shutil.rmtree(out, ignore_errors=True)
    run(folder, temper, "run", "configs/quickstart.yaml", "--plain", *(
        word for setting in (f"steps={STEPS}", "policy=synthetic", "tracking.tensorboard=true",
                             "tracking.aliases=[trl]", f"run_dir={out}") for word in ("--set", setting)))
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    groups = lines[-1]["groups"]["trained"]
    trace = json.loads((out / "trace.json").read_text())
    board = b"".join(path.read_bytes() for path in (out / "tensorboard").iterdir())
    run(folder, temper, "report", out, "--html")
    page = (out / "report.html").read_text()
    data = json.loads(re.search(r'id="temper-report">(.*?)</script>', page, re.S)[1].replace("<\\/", "</"))
    prometheus, series, table = served(temper, out, ("/metrics", f"/api/runs/{out.name}/metrics", "/api/metrics"))
    tracking = module_of(folder / "python/src/temper/tracking.py")
    flat = tracking.with_aliases(tracking.flatten(lines[-1]), ["trl"])
    row = {"name": NAME, "unit": "groups", "group": "Examples", "label": "example"}.items()
    return {
        "metrics.jsonl": len(lines) == STEPS and all(line[NAME] == groups > 0 for line in lines),
        "summary.json": json.loads((out / "summary.json").read_text())["last_step"][NAME] == groups,
        "temper report": re.search(rf"Examples, groups +example {groups}$", run(folder, temper, "report", out), re.M),
        "HTML report": NAME in data["metrics"]["series"] and any(row <= r.items() for r in data["table"]),
        "page": NAME in json.loads(series)["series"] and any(row <= r.items() for r in json.loads(table)),
        "Prometheus": (f"# HELP temper_{NAME} An example of a metric.\n" in prometheus
                       and re.search(rf"^temper_{NAME}{{.*}} {groups}$", prometheus, re.M)),
        "TensorBoard": NAME.encode() in board and b"example/trl" in board,
        "trace (Perfetto)": any(e["ph"] == "C" and e["name"] == NAME for e in trace),
        "wandb, trackio": flat[NAME] == flat["example/trl"] == groups,
        "reference": f"`{NAME}`" in (folder / "docs/reference/metrics.md").read_text(),
    }


def try_metric(root, names, is_code, goals):
    """0 if a new metric is shown everywhere and touches no more code files, and files, than `goals`."""
    folder = root / "build/change_cost/metric"
    copy(root, names, folder)
    before = {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
    apply(METRIC, folder)
    build = folder / "build" / PRESET
    if not (build / "build.ninja").exists():
        run(folder, "cmake", "--preset", PRESET)
    jobs = os.environ.get("TEMPER_JOBS", "1")
    run(folder, "cmake", "--build", build, "-j", jobs, "--target", *TARGETS)
    test = next(path for path in build.rglob("test_watch") if path.is_file())
    run(folder, test, f"--gtest_filter={GENERATED}", TEMPER_UPDATE_GOLDEN="1")
    shown = outputs_of(folder, build / "bin/temper")
    for output, present in shown.items():
        print(f"{'shown in' if present else 'MISSING in':12}{output}")
    changed = [name for name in sorted(before) if before[name] != (folder / name).read_bytes()]
    for name in changed:
        print(f"    {'code' if is_code(name) else '    '} {name}")
    code = sum(map(is_code, changed))
    print(f"a metric: {code} code files (goal {goals[0]}), {len(changed)} files (goal {goals[1]})")
    return 0 if all(shown.values()) and code <= goals[0] and len(changed) <= goals[1] else 1
