"""Trials of the faults R1 to R14: by breaking the program (faults-before-after.py).

A trial is a function that gets a Trial and returns (whether the fault is there, what was seen).
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from faults_trial import SMALL, SYNTHETIC, descendants, get, lines_of, listener_below, peak_mb, trial, wait_for

EMPTY = '''
import numpy as np, temper
class Engine(temper.Engine):
    def __init__(self): self.n = 0
    def generate(self, requests):
        for r in requests:
            self.n += 1
            if self.n > 200 and self.n % 16 == 0: yield r.done([], [], "length")
            else: yield r.done(np.full(32, 3, np.int32), np.full(32, -1.0, np.float32), "length")
'''


@trial("R1", "An engine that gives an empty response ends the run, in the trainer's name",
       "Responses.MayBeEmptyAndUnlimited", "Certificates.AResponseWithoutTokensIsRefusedByItsNumber")
def empty_response(t):
    t.write("plain.py", EMPTY)
    ended = t.run(SYNTHETIC, "steps=25", "rollout.engine.kind=python", "rollout.engine.use=plain:Engine")
    return ended.code != 0, ended.outcome


PROBE = '''
import json, os, socket, sys
def can(does):
    try: return bool(does())
    except BaseException: return False
def unix():
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1] + "/host.sock"); return True
def fifo():
    return os.write(os.open(sys.argv[1] + "/fifo", os.O_WRONLY | os.O_NONBLOCK), b"x")
def devices():
    allowed = {"null", "zero", "full", "random", "urandom", "tty"}
    def opens(d): return can(lambda: os.open("/dev/" + d, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY) >= 0)
    import stat
    return any(opens(d) for d in os.listdir("/dev") if d not in allowed
               and stat.S_IFMT(os.lstat("/dev/" + d).st_mode) in (stat.S_IFCHR, stat.S_IFBLK))
found = 1 * can(unix) + 2 * can(fifo) + 4 * can(devices)
for line in sys.stdin: print(json.dumps({"reward": found}), flush=True)
'''


@contextlib.contextmanager
def folder_outside():
    """A folder that is not below /tmp: a sandbox has a /tmp of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="temper-trial-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@trial("R2a, b", "A sandbox that reaches UNIX sockets, FIFOs and devices", "Probes.AreStopped",
       "InNamespaces.ProvidesFiveDevices")
def sandbox_reaches_out(t):
    with folder_outside() as outside, socket.socket(socket.AF_UNIX) as host:
        host.bind(str(outside / "host.sock"))
        host.listen(64)
        os.mkfifo(outside / "fifo")
        reader = os.open(outside / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        (outside / "probe.py").write_text(PROBE)
        ended = t.run(SYNTHETIC, "steps=2", "verifier.kind=command", "verifier.sandbox=namespaces",
                      f"verifier.command=[python3, {outside}/probe.py, {outside}]", "samples.share=1")
        os.close(reader)
    if ended.code != 0:
        return True, ended.outcome
    found = int(lines_of(t.folder / "run/metrics.jsonl")[0]["rewards"]["max"])
    names = [name for bit, name in ((1, "UNIX socket"), (2, "FIFO"), (4, "devices")) if found & bit]
    return found != 0, "reached: " + (", ".join(names) or "nothing")


MEMORY = '''
import json, mmap, sys
for line in sys.stdin:
    m = mmap.mmap(-1, 900 << 20)
    for i in range(900): m.write(bytes(1 << 20))
    print(json.dumps({"reward": 1}), flush=True)
    m.close()
'''


@trial("R2c", "`verifier.memory: 256MiB` does not stop 900 MiB of shared memory",
       "Bounds.CountsAllKindsOfMemory", "Bounds.StopWhatExceedsThem")
def sandbox_memory(t):
    with folder_outside() as outside:
        (outside / "judge.py").write_text(MEMORY)
        ended = t.run(SYNTHETIC, "steps=1", "verifier.kind=command", "verifier.sandbox=namespaces", "verifier.pool=1",
                      "verifier.memory=256MiB", f"verifier.command=[python3, {outside}/judge.py]",
                      "algorithm.groups_per_update=2", "algorithm.responses_per_group=2")
    return ended.code == 0, ended.outcome


@trial("R3", "A `temper scale` that meets a start ends the run with an exception",
       "AScaledRun.ReadsARequestOnlyOnceItHasAFleet", "AScaledRun.GoesOnWhateverIsInPlaceOfARequest")
def scale_meets_start(t):
    t.run(SYNTHETIC)
    t.write("run/scale.request", "id: x\nrollout: 2\n")
    ended = t.temper("run", "--resume", "run", "--plain", "--set", "steps=40")
    return ended.code != 0, ended.outcome


RISING = '''
import json, sys
for n, line in enumerate(sys.stdin): print(json.dumps({"reward": min(1.0, n / 60)}), flush=True)
'''
BEST = ("steps=12", "checkpoint.every=4", "evaluation.every=4", "evaluation.problems=4", "evaluation.samples=4",
        "evaluation.greedy=false", "evaluation.keep_best=true", "verifier.kind=command", "verifier.pool=1")


@trial("R4", "A damaged `best/` is whole for fsck, and exported",
       "BestFiles.ThatAreDamagedAtRandomAreFoundByAllCommandsAndRepaired")
def damaged_best(t):
    t.write("judge.py", RISING)
    ended = t.run(SMALL, *BEST, f"verifier.command=[python3, {t.folder}/judge.py]")
    weights = t.folder / "run/best/model.safetensors"
    if not weights.exists():
        return True, f"no best/: {ended.text[-300:]}"
    data = bytearray(weights.read_bytes())
    for i in range(len(data) // 2, len(data) // 2 + 100):
        data[i] ^= 64
    weights.write_bytes(data)
    codes = {"fsck": t.temper("fsck", "run").code, "export": t.temper("export", "run@best", "out").code}
    return 0 in codes.values(), ", ".join(f"{name} exit {code}" for name, code in codes.items())


@trial("R5", "The page shows a run to every user of the machine", "ServerTest.WithoutTheTokenNothingIsToldOnAnyAddress")
def page_without_token(t):
    t.run(SYNTHETIC, "samples.share=1", to="runs/first")
    _, port, _ = t.serve("runs")
    status, body = get(port, "/api/runs/first/samples")
    return status == 200, f"samples without the token: status {status}"


@trial("R6", "A kill during a resume makes `audit` report violations",
       "AHeadThatIsKilled.AtAnySystemCallOfAResumeWithAnotherSettingIsFollowedByOneThatTheLogKnows")
def killed_resume(t):
    t.run(SYNTHETIC, "steps=60")
    traced = [word for name in ("certificates.jsonl", "certificates.jsonl.partial")
              for word in ("-P", str(t.folder / "run" / name))]
    ended = t.temper("run", "--resume", "run", "--plain", "--set", "steps=70", before=[
        "strace", "-f", "-qq", "-o", "/dev/null", *traced, "-e", "trace=write",
        "-e", "inject=write:signal=SIGKILL:when=3"])
    if ended.code == 0:
        return True, "no write was met"
    audit = t.temper("audit", "run")
    return audit.code != 0, f"audit exit {audit.code}: {audit.line('VIOLATION|CLEAN|clean')}"


NONSENSE = '''
import numpy as np, temper
class Engine(temper.Engine):
    def __init__(self, value=0.0): self.n, self.value = 0, value
    def generate(self, requests):
        for r in requests:
            self.n += 1
            value = self.value if self.n > 40 and self.n % 8 == 0 else -1.0
            yield r.done(np.full(4, 3, np.int32), np.full(4, value, np.float32), "length")
'''


@trial("R7", "Log-probabilities of -3e38 end the run in the trainer's name", "Logprobs.OfSampledTokensAreBounded",
       "Logprobs.ImportanceWeightOfTheLeastLikelyTokenHasAFiniteSquare")
def huge_logprobs(t):
    t.write("nonsense.py", NONSENSE)
    ended = t.run(SMALL, "steps=8", "rollout.engine.kind=python", "rollout.engine.use=nonsense:Engine",
                  "rollout.engine.with={value: -3e38}", limit=90)
    return ended.code != 0, ended.outcome


@trial("R7, positive", "Log-probabilities above 0 are trained", "Logprobs.OfSampledTokensAreBounded")
def positive_logprobs(t):
    t.write("nonsense.py", NONSENSE)
    ended = t.run(SMALL, "steps=8", "rollout.engine.kind=python", "rollout.engine.use=nonsense:Engine",
                  "rollout.engine.with={value: 5.0}", limit=90)
    found = re.search(r"responses failed (\d+)", ended.text)
    failed = int(found[1]) if found else 0
    return failed == 0, f"{ended.how}, {failed} responses refused"


AGENT = '''
import json, sys, time
for line in sys.stdin: time.sleep(0.5); print(json.dumps({"reward": 1}), flush=True)
'''


@trial("R8", "The agents' endpoint reads bodies of 64 MiB from clients without a session",
       "HttpGatewayTest.ReadsNoBodyWithoutASession", "HttpGatewayTest.UnauthenticatedPeersCannotLockOutAnAgent")
def gateway_without_session(t):
    t.write("agent.py", AGENT)
    config = SMALL + "rollout: {agent: {command: [python3, agent.py], deadline: 60s}}\n"
    process = t.start("run", t.write("run.yaml", config), "--plain", "--set", "steps=1000", "--set", "run_dir=run")

    def connect():
        """To the endpoint of a worker, which may be replaced meanwhile."""
        try:
            return socket.create_connection(("127.0.0.1", listener_below(process.pid) or 0), timeout=5)
        except OSError:
            return None
    held = []
    for _ in range(8):
        client = wait_for(connect, 60)
        held.append(client)
        try:
            client.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 67108000\r\n\r\n")
            for _ in range(60):
                client.sendall(b"x" * (1 << 20))
        except OSError:
            pass
    peak = peak_mb(descendants(process.pid))
    for client in held:
        client.close()
    return peak > 400, f"8 bodies of 60 MiB, a worker's peak {peak} MB"


@trial("R9", "A FIFO in a run folder hangs the page and `check`", "SpecialFilesOfARun.AFifoHangsNoPageAndNoCheck",
       "SpecialFilesOfARun.AreNeitherWaitedForNorShownByAnyCommand")
def fifo(t):
    t.run(SYNTHETIC, to="runs/f")
    (t.folder / "runs/f/live.json").unlink()
    os.mkfifo(t.folder / "runs/f/live.json")
    os.mkfifo(t.folder / "fifo.yaml")
    process, port, token = t.serve("runs")
    status, _ = get(port, "/api/runs", token, limit=10)
    process.terminate()
    ended = t.wait(process, 10)
    check = t.temper("check", "fifo.yaml", limit=10)
    return status != 200 or None in (ended.code, check.code), \
        f"page: {f'status {status}' if status else 'no answer in 10 s'}, SIGTERM: {ended.how}; check: {check.how}"


class EndlessServer(threading.Thread):
    """Answers each request with a chunk extension that does not end."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=[client], daemon=True).start()

    def answer(self, client):
        try:
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;")
            for _ in range(300):
                client.sendall(b"a" * (1 << 20))
        except OSError:
            pass


@trial("R10", "A server that keeps sending holds a worker past its deadline",
       "BadServers.EndlessOutputDelaysNoOtherDeadline", "BadServers.EndlessPartsStopAtTheLimit")
def endless_extension(t):
    t.needs("temper-server-worker")
    server = EndlessServer()
    config = SMALL + f"rollout: {{engine: {{kind: vllm, data: ['http://127.0.0.1:{server.port}'], patience: 6s}}}}\n"
    process = t.start("run", t.write("run.yaml", config), "--plain", "--set", "run_dir=run")
    peak = 0
    end = time.monotonic() + 40
    while process.poll() is None and time.monotonic() < end:
        peak = max(peak, peak_mb(descendants(process.pid)))
        time.sleep(0.2)
    ended = t.wait(process, 1)
    return peak > 400 or ended.code is None, \
        f"a worker's peak {peak} MB; {ended.outcome}"


@trial("R12", "400 clients without a token keep everybody out of the page",
       "ServerTest.ClientsThatShowNoTokenKeepNobodyOutWhoHasIt")
def full_page(t):
    t.run(SYNTHETIC, to="runs/first")
    _, port, token = t.serve("runs")
    held = []
    for _ in range(450):
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=1)
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            held.append(client)
        except OSError:
            break
    status, _ = get(port, "/api/runs", token, limit=4)
    for client in held:
        client.close()
    return status != 200, f"with {len(held)} slow clients: " + (f"status {status}" if status else "no answer in 4 s")


@trial("R14", "Programs are not hardened", "Programs.AreHardened")
def hardening(t):
    dynamic = subprocess.run(["readelf", "-dW", t.program], capture_output=True, text=True).stdout
    symbols = subprocess.run(["readelf", "--dyn-syms", "-W", t.program], capture_output=True, text=True).stdout
    has = {"BIND_NOW": bool(re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic)),
           "stack protector": "__stack_chk_fail" in symbols, "FORTIFY": bool(re.search(r"__\w+_chk\b", symbols))}
    return not all(has.values()), ", ".join(("" if yes else "no ") + name for name, yes in has.items())


LOUD = '''
import temper
class Engine(temper.Engine):
    def generate(self, requests):
        for request in requests:
            print("x" * (1 << 20), flush=True)
        raise RuntimeError("y" * (8 << 20))
'''


@trial("R13", "Texts of a worker are not cut", "Texts.AreBoundedAndCutBetweenCharacters")
def long_texts(t):
    t.write("loud.py", LOUD)
    ended = t.run(SYNTHETIC, "rollout.engine.kind=python", "rollout.engine.use=loud:Engine", "steps=2")
    live = (t.folder / "run/live.json").stat().st_size / 1e6
    log = max(path.stat().st_size for path in (t.folder / "run/logs").iterdir()) / 1e6
    return live > 1 or log > 100, f"{ended.how}; live.json {live:.2f} MB, largest log {log:.0f} MB"
