"""Adds examples of changes to a copy of the tree, builds it, runs their tests, and checks that each works.

Imported by change_cost, which prints the count. The copy and its build folder stay in build/change_cost,
so that a second try compiles only what is new. A first one takes as long as a build of the programs.
"""
import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

from change_examples import EXAMPLES, Copied

PRESET = "release"
PROGRAMS = ("temper", "temper-worker", "temper-server-worker", "temper-study")
# The tests that make files anew from the tables, and what they make.
GENERATORS = {"test_watch": "MetricNames.*", "test_orchestrator": "BrokenConfigs.*:ConfigReference.*",
              "test_protocol": "Protocol.GeneratedPageIsUpToDate"}
STEPS = 3


def copy(root, names, texts, to):
    """Makes `to` hold these files of `root`, with these texts instead of theirs, and no others outside build/. Equal
    files keep their time."""
    for name in names | texts.keys():
        source, target = root / name, to / name
        if name not in texts and not source.is_file():
            continue
        content = texts[name].encode() if name in texts else source.read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if source.is_file():
                shutil.copymode(source, target)
    for path in sorted(to.rglob("*"), reverse=True):
        name = path.relative_to(to)
        if path.is_file() and name.parts[0] != "build" and str(name) not in names | texts.keys():
            path.unlink()


def edited(folder, examples):
    """The files of the examples -> their new texts, for the sources of this folder."""
    texts = {}
    for edit in (edit for example in examples for edit in example.edits):
        if isinstance(edit, Copied):
            text = (folder / edit.of).read_text()
            for word, other in edit.words.items():
                text = text.replace(word, other)
        elif not edit.old:
            text = edit.new
        else:
            text = texts.get(edit.file) or (folder / edit.file).read_text()
            if text.count(edit.old) != 1:
                sys.exit(f"change_cost: {edit.file}: expected one {edit.old!r}, found {text.count(edit.old)}")
            text = text.replace(edit.old, edit.new)
        texts[edit.file] = text
    return texts


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


def short_run(folder, temper, name, config, *settings):
    """The folder of a run of a few steps."""
    out = folder / "build/change_cost_run" / name
    shutil.rmtree(out, ignore_errors=True)
    run(folder, temper, "run", config, "--plain", *(
        word for setting in (f"steps={STEPS}", "policy=synthetic", f"run_dir={out}", *settings)
        for word in ("--set", setting)))
    return out


def audit_of(folder, temper, out):
    """The report of the audit of a run whose replay gives the same commands."""
    run(folder, temper, "replay", out)
    return json.loads(run(folder, temper, "audit", out, "--json"))


def records_of(folder, temper, out):
    return [json.loads(line) for line in run(folder, temper, "events", out).splitlines()]


def try_metric(folder, temper, name):
    """Each output of a short run, and whether it shows the metric."""
    out = short_run(folder, temper, name, "configs/quickstart.yaml", "tracking.tensorboard=true",
                    "tracking.aliases=[trl]")
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
    row = {"name": name, "unit": "groups", "group": "Examples", "label": "example"}.items()
    return {
        "metrics.jsonl": len(lines) == STEPS and all(line[name] == groups > 0 for line in lines),
        "summary.json": json.loads((out / "summary.json").read_text())["last_step"][name] == groups,
        "temper report": re.search(rf"Examples, groups +example {groups}$", run(folder, temper, "report", out), re.M),
        "HTML report": name in data["metrics"]["series"] and any(row <= r.items() for r in data["table"]),
        "page": name in json.loads(series)["series"] and any(row <= r.items() for r in json.loads(table)),
        "Prometheus": (f"# HELP temper_{name} An example of a metric.\n" in prometheus
                       and re.search(rf"^temper_{name}{{.*}} {groups}$", prometheus, re.M)),
        "TensorBoard": name.encode() in board and b"example/trl" in board,
        "trace (Perfetto)": any(e["ph"] == "C" and e["name"] == name for e in trace),
        "wandb, trackio": flat[name] == flat["example/trl"] == groups,
        "reference": f"`{name}`" in (folder / "docs/reference/metrics.md").read_text(),
    }


def try_rule(folder, temper, name):
    out = short_run(folder, temper, name, "configs/quickstart.yaml", f"staleness.rule={name}", "staleness.bound=1")
    audit = audit_of(folder, temper, out)
    return {"a run": records_of(folder, temper, out)[0]["event"]["started"]["config"]["staleness_rule"] == name,
            "its bound": audit["bound"] == 1 and audit["max_staleness"] <= 1,
            "its audit": audit["violations"] == [] and audit["steps"] == STEPS}


MODE_CONFIG = """\
name: example
hardware: simulated
algorithm: {{groups_per_update: 8, responses_per_group: 4, minibatches: 1, kl: 0.01}}
staleness: {{bound: 1}}
placement: {{mode: {mode}, cards: 8, rollout_cards: 4}}
rollout: {{replicas: 2, concurrency: 8}}
simulation:
  cluster: cm384
  model: qwen2.5-0.5b
  prompt: {{kind: constant, mean: 64}}
  response: {{mean: 256, p99_over_median: 4, cap: 1024}}
"""


def try_mode(folder, temper, name):
    config = folder / "build/change_cost_run/mode.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(MODE_CONFIG.format(mode=name))
    out = short_run(folder, temper, name, config)
    switches = {command["switch"]["action"] for record in records_of(folder, temper, out)
                for command in record.get("commands", []) if "switch" in command}
    tuned = out.with_name("tuned")
    shutil.rmtree(tuned, ignore_errors=True)
    run(folder, temper, "tune", config, "--modes", name, "--eta", "1", "--effort", "2", "--steps", "4", "--out", tuned)
    with open(tuned / "tune.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {"engines generate on the lent cards": "allocate_kv" in switches,
            "the reference scores on them": "onload_reference" in switches,
            "the audit of the run": audit_of(folder, temper, out)["violations"] == [],
            "the search": rows != [] and all(row["mode"] == name for row in rows)}


def try_engine(folder, temper, name):
    start = (f"python3 {folder}/tests/support/fake_server.py --kind {name} --model {{model}} --host {{host}} "
             "--port {port} --vocabulary 14")
    out = short_run(folder, temper, name, "configs/quickstart.yaml", f"rollout.engine.kind={name}",
                    f"rollout.engine.start={start}")
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return {"a run with responses of the server": len(lines) == STEPS,
            "the audit of the run": audit_of(folder, temper, out)["violations"] == []}


TRIES = {"staleness rule": try_rule, "placement mode": try_mode, "metric": try_metric, "engine kind": try_engine}


def program_of(build, name):
    return next(path for path in build.rglob(name) if path.is_file())


def regenerate(folder, build):
    for program, chosen in GENERATORS.items():
        run(folder, program_of(build, program), f"--gtest_filter={chosen}", TEMPER_UPDATE_GOLDEN="1")
    (folder / "python/protocol.json").write_text(run(folder, build / "bin/temper", "protocol", "--json"))
    run(folder, sys.executable, "python/tools/generate_messages.py")


def count(folder, before, examples, is_code):
    """Each example -> the files that changed for it. A generated file belongs to those that it names."""
    names = git_names(folder, before)
    changed = {name for name in names if before.get(name) != (folder / name).read_bytes()}
    files = {example.kind: {edit.file for edit in example.edits} for example in examples}
    for name in changed - set().union(*files.values()):
        text = (folder / name).read_text()
        owners = [example.kind for example in examples if example.name in text]
        if not owners:
            sys.exit(f"change_cost: {name} changed, and names no example")
        for kind in owners:
            files[kind].add(name)
    return files


def git_names(folder, before):
    """Files of the copy outside build/."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")
            if path.is_file() and path.relative_to(folder).parts[0] != "build" and "__pycache__" not in path.parts}


def try_examples(root, names, is_code, kinds):
    """0 if each example works, and touches no more source files, and files, than its limits."""
    examples = [example for example in EXAMPLES if not kinds or example.kind.split()[-1] in kinds]
    folder = root / "build/change_cost/tree"
    before = {name: (root / name).read_bytes() for name in names if (root / name).is_file()}
    copy(root, names, edited(root, examples), folder)
    build = folder / "build" / PRESET
    if not (build / "build.ninja").exists():
        run(folder, "cmake", "--preset", PRESET)
    tests = {"test_structure": {"Walls.*"}}
    for example in examples:
        for program, chosen in example.tests.items():
            tests.setdefault(program, set()).add(chosen)
    jobs = os.environ.get("TEMPER_JOBS", "1")
    run(folder, "cmake", "--build", build, "-j", jobs, "--target", *PROGRAMS, *GENERATORS, *tests)
    regenerate(folder, build)
    for program, chosen in tests.items():
        said = run(folder, program_of(build, program), f"--gtest_filter={':'.join(sorted(chosen))}")
        print(re.search(r"\[==========\] \d+ tests? .* ran\.[^\n]*", said)[0])
    files = count(folder, before, examples, is_code)
    results = []
    for example in examples:
        print(f"{example.kind}: {example.name}")
        for what, holds in TRIES[example.kind](folder, build / "bin/temper", example.name).items():
            print(f"    {'ok' if holds else 'MISSING':8}{what}")
            results.append(bool(holds))
        touched = sorted(files[example.kind])
        for name in touched:
            print(f"    {'code' if is_code(name) else '    '} {name}")
        code = sum(map(is_code, touched))
        print(f"    {code} code files (limit {example.code}), {len(touched)} files (limit {example.files})")
        results += [code <= example.code, len(touched) <= example.files]
    print(f"{results.count(True)} passed, {results.count(False)} failed, 0 skipped")
    return 0 if all(results) else 1
