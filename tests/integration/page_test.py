"""The web page in a real browser, and the exporters with the real programs that read them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from environment import ROOT, Environment, trackers_environment

DRIVER = Path(__file__).with_name("page") / "drive.mjs"
SYNTHETIC = (
    "policy=synthetic", "synthetic.step_time=2ms", "steps=40", "samples.share=1",
    "algorithm.groups_per_update=4", "checkpoint.every=10",
)  # fmt: skip


def start_serving(temper: str, *words: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([temper, "serve", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("page at http://"), line
    return process, line.split()[2]


@pytest.fixture(scope="module")
def runs(temper: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    sets = [word for pair in SYNTHETIC for word in ("--set", pair)]
    made = [["configs/quickstart.yaml", "--set", "tracking.aliases=[trl]", "--set", f"run_dir={folder}/local", *sets]]
    for bound in (0, 2):
        made.append(
            ["configs/cm384_pangu.yaml", "--driver", "in-process", "--set", "steps=8",
             "--set", f"staleness.bound={bound}", "--set", f"run_dir={folder}/cm384-{bound}"]
        )  # fmt: skip
    for words in made:
        subprocess.run([temper, "run", *words, "--plain"], cwd=ROOT, check=True, timeout=240, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def page(temper: str, runs: Path) -> Iterator[str]:
    process, url = start_serving(temper, str(runs), "--address", "0")
    yield url
    process.terminate()
    process.wait(10)


def part(page: str, path: str) -> str:
    """The address of a part of the page, with the page's token."""
    address, token = page.split("?")
    return f"{address}{path}?{token}"


def get(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
        return answer.read().decode()


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with node_modules that has what drive.mjs needs."""
    if not shutil.which("node") or not shutil.which(os.environ.get("CHROMIUM", "chromium")):
        pytest.skip("no node, or no chromium")
    if kept := os.environ.get("PAGE_MODULES"):
        return Path(kept)
    folder = tmp_path_factory.mktemp("modules")
    made = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "puppeteer-core", "axe-core"],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f"npm cannot install puppeteer-core: {made.stderr[-300:]}")
    return folder


def drive(modules: Path, url: str, out: Path, *words: str, **environment: str) -> dict:
    done = subprocess.run(
        ["node", str(DRIVER), url, str(out), *words], capture_output=True, text=True, timeout=600,
        env={**os.environ, "PAGE_MODULES": str(modules), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_every_view_works_at_every_width_in_both_themes(modules: Path, page: str, tmp_path: Path) -> None:
    found = drive(modules, page, tmp_path, PAGE_RUNS="local,cm384-2", PAGE_PAN="cm384-2")
    assert found["errors"] == []
    assert found["foreign"] == []
    assert found["overflow"] == []
    assert [f for f in found["axe"] if f["impact"] in ("serious", "critical")] == []
    for name, view in found["views"].items():
        if "-cards-" in name:  # a map and a time line in more than one colour
            assert all(colours > 2 for colours in view["canvases"]), (name, view)
    assert found["keyboard"]["path"][-1] == "A:cards"
    assert "card 0" in found["keyboard"]["note"]
    assert found["pan"]["frames_per_s"] > 0  # ./x bench large_page says how many there are


def test_a_report_is_one_file_that_asks_for_nothing(modules: Path, temper: str, runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    subprocess.run([temper, "report", str(runs / "cm384-2"), f"--html={file}"], check=True, timeout=60)
    found = drive(modules, file.as_uri(), tmp_path, "1440", "light")
    assert found["errors"] == []
    assert found["foreign"] == []
    assert "finished" in {view["badge"] for view in found["views"].values()}


def test_the_real_prometheus_scrapes_it(page: str, runs: Path, tmp_path: Path) -> None:
    promtool, prometheus = shutil.which("promtool"), shutil.which("prometheus")
    if not promtool or not prometheus:
        pytest.skip("no prometheus")
    text = get(part(page, "metrics"))
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stderr
    host = page.removeprefix("http://").split("/")[0]
    (tmp_path / "token").write_text(page.split("token=")[1])
    (tmp_path / "p.yml").write_text(
        f"scrape_configs: [{{job_name: temper, scrape_interval: 1s, static_configs: [{{targets: ['{host}']}}], "
        f"authorization: {{credentials_file: '{tmp_path}/token'}}}}]"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [prometheus, f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/db",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    )  # fmt: skip
    try:
        ask = f"http://127.0.0.1:{port}/api/v1/query?query=temper_tokens_trained_total"
        deadline = time.monotonic() + 60
        result: list = []
        while not result and time.monotonic() < deadline:
            try:
                result = json.loads(get(ask))["data"]["result"]
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(20)
    values = {r["metric"]["run"]: float(r["value"][1]) for r in result}
    for name in ("local", "cm384-2"):
        summary = json.loads((runs / name / "summary.json").read_text())
        assert values[name] == summary["tokens"]["trained"]


@pytest.fixture(scope="module")
def trackers() -> Environment:
    environment = trackers_environment()
    try:
        environment.make()
    except RuntimeError as reason:
        pytest.skip(f"no environment for trackers: {reason}")
    return environment


def python_of(trackers: Environment, package: str, *words: str, **variables: str) -> str:
    """What this interpreter prints; skipped where the package could not be fetched."""
    if reason := trackers.packages()[package]:
        assert package not in trackers.broken(), reason
        pytest.skip(f"{package} is not here: {reason}")
    done = subprocess.run(
        [str(trackers.python), *words], capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python/src"), **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def lines_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""


def test_the_real_tensorboard_reads_every_update(trackers: Environment, runs: Path) -> None:
    for name, alias in (("cm384-2", ""), ("local", "training_tok/s")):
        read = json.loads(python_of(trackers, "tensorboard", "-c", READ_EVENTS, str(runs / name / "tensorboard")))
        wanted = [[line["step"], line["tokens_per_s"]["trained"]] for line in lines_of(runs / name)]
        for tag in filter(None, ("tokens_per_s/trained", alias)):
            assert [e[0] for e in read[tag]] == [w[0] for w in wanted]
            assert [e[1] for e in read[tag]] == pytest.approx([w[1] for w in wanted], rel=1e-6)
        assert {"reward", "rewards/min", "rewards/max", "length/min", "staleness/max", "busy", "states/decode"} <= set(read)


# The file of an offline run: a head of 7 bytes, then records in blocks of 32 KiB, as LevelDB's log has them.
READ_OFFLINE = """
import json, struct, sys
from wandb.proto import wandb_internal_pb2
data, at, piece, records = open(sys.argv[1], "rb").read(), 7, b"", []
while at + 7 <= len(data):
    left = 32768 - at % 32768
    if left < 7:
        at += left
        continue
    size, kind = struct.unpack_from("<HB", data, at + 4)
    piece += data[at + 7 : at + 7 + size]
    at += 7 + size
    if kind in (1, 4):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(piece)
        records.append(record)
        piece = b""
history, summary = [], {}
items = lambda record: {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record}
for record in records:
    kind = record.WhichOneof("record_type")
    if kind == "history":
        history.append(items(record.history.item))
    elif kind == "summary":
        summary.update(items(record.summary.update))
print(json.dumps([history, summary]))
"""


def test_the_real_wandb_keeps_it_offline(trackers: Environment, runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "cm384-2", run)
    python_of(trackers, "wandb", "-m", "temper.wandb", str(run), "--offline", "--once")
    log = next((run / "tracking").glob("wandb/offline-run-*/*.wandb"))
    history, summary = json.loads(python_of(trackers, "wandb", "-c", READ_OFFLINE, str(log)))
    wanted = [[line["step"], line["tokens_per_s"]["trained"]] for line in lines_of(run)]
    assert [[h["step"], h["tokens_per_s/trained"]] for h in history] == wanted
    ours = json.loads((run / "summary.json").read_text())
    assert summary["summary/tokens/trained"] == ours["tokens"]["trained"]
    assert summary["summary/staleness/max"] == ours["staleness"]["max"]


READ_TRACKIO = """
import glob, json, sqlite3, sys
rows = []
for file in glob.glob(sys.argv[1] + "/**/*.db", recursive=True):
    tables = [name for name, in sqlite3.connect(file).execute("select name from sqlite_master where type = 'table'")]
    if "metrics" in tables:
        rows += sqlite3.connect(file).execute("select step, metrics from metrics order by step").fetchall()
print(json.dumps([[step, json.loads(metrics)] for step, metrics in rows]))
"""


def test_the_real_trackio_keeps_every_update(trackers: Environment, runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "cm384-2", run)
    kept = str(tmp_path / "trackio")
    python_of(trackers, "trackio", "-m", "temper.trackio", str(run), "--once", TRACKIO_DIR=kept, HF_HUB_OFFLINE="1")
    rows = json.loads(python_of(trackers, "trackio", "-c", READ_TRACKIO, kept))
    wanted = [[line["step"], line["tokens_per_s"]["trained"]] for line in lines_of(run)]
    assert [[step, metrics["tokens_per_s/trained"]] for step, metrics in rows] == wanted


def talk(url: str, text: bytes, wait: float = 15) -> bytes:
    host, port = url.removeprefix("http://").split("/")[0].split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as s:
        s.sendall(text)
        answer = b""
        try:
            while piece := s.recv(65536):
                answer += piece
        except (TimeoutError, ConnectionError):
            pass
        return answer


def test_strangers_and_floods_are_refused(page: str) -> None:
    token = page.split("token=")[1].encode()
    assert b"401" in talk(page, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"404" in talk(page, b"GET /../../etc/passwd?token=" + token + b" HTTP/1.1\r\nHost: localhost\r\n"
                          b"Connection: close\r\n\r\n")
    huge = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100000 + b"\r\n\r\n"
    assert b"200" not in talk(page, huge)[:20]
    begun = time.monotonic()
    assert talk(page, b"GET / HT", wait=20) == b""  # a request that never ends is ended
    assert time.monotonic() - begun < 15


def test_three_hundred_clients_and_twenty_that_never_read(temper: str, runs: Path) -> None:
    process, url = start_serving(temper, str(runs), "--address", "0")
    try:
        host, port = url.removeprefix("http://").split("/")[0].split(":")
        bearer = b"Authorization: Bearer " + url.split("token=")[1].encode() + b"\r\n"

        def resident() -> int:
            return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096

        get(part(url, "api/runs"))
        before = resident()
        ask = b"GET /api/runs/local/stream HTTP/1.1\r\nHost: localhost\r\n" + bearer + b"\r\n"
        clients = []
        for _ in range(300):  # Each shows its token at once: only a hundred that have not yet are kept.
            clients.append(socket.create_connection((host, int(port)), timeout=20))
            clients[-1].sendall(ask)
        for client in clients[20:]:
            head = b""
            while b"data: " not in head:
                piece = client.recv(4096)
                assert piece, "the server closed the connection"
                head += piece
        live = runs / "local" / "live.json"
        text = live.read_text()

        def change(times: int) -> int:
            for _ in range(times):
                live.write_text(text)
                time.sleep(0.3)
            return resident()

        first = change(10)
        last = change(30)
        print(f"server: {before >> 20} MiB, {first >> 20} with 300 clients, {last >> 20} after 30 frames more")
        assert "local" in get(part(url, "api/runs"))  # others are answered meanwhile
        assert first - before < 64 << 20
        assert last - first < 2 << 20  # nothing piles up behind those that do not read
        for client in clients:
            client.close()
    finally:
        process.terminate()
        assert process.wait(10) == 0


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
def test_only_the_token_opens_it(temper: str, runs: Path, address: str) -> None:
    process, url = start_serving(temper, str(runs), "--address", f"{address}:0")
    try:
        base, token = url.split("?token=")
        base = base.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(base + "api/runs")
        assert refused.value.code == 401
        assert "local" in get(base + "api/runs", Authorization=f"Bearer {token}")
    finally:
        process.terminate()
        process.wait(10)


def test_a_run_that_is_killed_and_resumed_goes_on_without_a_reload(
    modules: Path, temper: str, tmp_path: Path
) -> None:
    sets = [w for pair in (*SYNTHETIC, "steps=100000", "synthetic.step_time=20ms") for w in ("--set", pair)]
    begin = [temper, "run", str(ROOT / "configs/quickstart.yaml"), "--plain", *sets, "--set", f"run_dir={tmp_path}/a"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(begin, **quiet)
    serving, url = start_serving(temper, str(tmp_path), "--address", "0")
    watching = None
    try:
        while not (tmp_path / "a/checkpoints/step-000010").exists():
            assert run.poll() is None
            time.sleep(0.1)
        watching = subprocess.Popen(
            ["node", str(DRIVER.with_name("live.mjs")), url, "a"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PAGE_MODULES": str(modules)},
        )  # fmt: skip
        assert watching.stdout

        def shown() -> str:
            assert watching and watching.stdout
            return watching.stdout.readline().split(" ")[0].strip()

        assert shown() == "running"
        run.kill()
        assert run.wait() == -signal.SIGKILL  # it had not finished before
        assert shown() == "lost"
        saved = max(int(folder.name.split("-")[1]) for folder in (tmp_path / "a/checkpoints").glob("step-" + "[0-9]" * 6))
        again = [temper, "run", "--resume", str(tmp_path / "a"), "--plain", "--set", f"steps={saved + 100}"]
        run = subprocess.Popen(again, **quiet)
        assert shown() == "running"
        assert shown() == "finished"
        assert watching.wait(30) == 0
    finally:
        for process in (run, serving, watching):
            if process and process.poll() is None:
                process.kill()
