"""Trials of the faults P and A (kinds of public bug reports) and of a new user's list (USER):
faults-before-after.py runs them.
"""
import json
import os
import pathlib
import re
import select
import signal
import struct
import time

from faults_trial import SMALL, SYNTHETIC, UNITS, get, lines_of, shorten, trial, wait_for

PROBLEMS = "".join(f'{{"prompt": "{i}+{i + 1}=", "answer": "{2 * i + 1}"}}\n' for i in range(200))
TASK = SMALL.replace("task: {kind: addition, digits: 1}", "task: {kind: jsonl, path: rows.jsonl}")

JUDGE = '''
import json, sys, time
for n, line in enumerate(sys.stdin, 1):
    if n % 5 == 0: time.sleep(60)
    print(json.dumps({"reward": 1.0 + len(json.loads(line)["response"])}), flush=True)
'''


# P: kinds of public bug reports.


@trial("P1", "A response that nobody judged is shown as trained with reward 0",
       "SamplesTest.AFailedResponseHasItsOwnOutcomeAndReason", "GroupsTest.DoNotTreatANullRewardAsZero")
def unjudged(t):
    t.write("judge.py", JUDGE)
    t.write("rows.jsonl", PROBLEMS)
    t.run(TASK, "steps=2", "verifier.kind=command", "verifier.command=[python3, judge.py]", "verifier.pool=2",
          "verifier.deadline=1s", limit=120)
    rows = lines_of(t.folder / "run/samples.jsonl")
    zero = sum(row["reward"] == 0 for row in rows)
    failed = sum(row["outcome"] == "failed" and row["reward"] is None and bool(row["reason"]) for row in rows)
    return zero > 0 or failed == 0, f"{zero} responses with reward 0, {failed} failed ones with a reason"


@trial("P5", "Answers that a verifier cannot judge are accepted", "Jsonl.ChecksAnswersAgainstTheVerifiersRule",
       "Jsonl.DerivesTheRuleFromTheVerifier")
def useless_answers(t):
    t.write("rows.jsonl", '{"prompt": "a|7", "answer": "seven"}\n{"prompt": "b|7", "answer": ""}\n')
    t.write("run.yaml", TASK)
    kinds = {"numeric": ["verifier.kind=numeric"], "exact": ["verifier.kind=exact"],
             "regex": ["verifier.kind=regex", "verifier.pattern={answer}"]}
    codes = {kind: t.temper("check", "run.yaml", *(w for one in sets for w in ("--set", one))).code
             for kind, sets in kinds.items()}
    return 0 in codes.values(), "check: " + ", ".join(f"{kind} exit {code}" for kind, code in codes.items())


def exported_model(t):
    """A model folder, of a run of one step."""
    t.run(SMALL, "steps=1", "checkpoint.every=1", to="base")
    ended = t.temper("export", "base", "model")
    if ended.code != 0:
        raise RuntimeError(ended.text)
    return t.folder / "model"


def read_tensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    at = 8 + length
    return {name: (one["dtype"], one["shape"], data[at + one["data_offsets"][0]:at + one["data_offsets"][1]])
            for name, one in header.items()}


def write_tensors(path, tensors):
    header, body = {}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


@trial("P6", "`model` and `check` accept a tied model with a different head, which `run` refuses",
       "TiedFolder.AcceptsAStoredHeadOnlyIfItEqualsTheEmbedding",
       "AModelFolder.ThatNoRunCanReadIsRefusedByModelCheckAndRunBeforeAnythingIsStarted")
def tied_head(t):
    model = exported_model(t)
    tensors = read_tensors(model / "model.safetensors")
    kind, shape, data = tensors["model.embed_tokens.weight"]
    tensors["lm_head.weight"] = (kind, shape, data[:-4] + b"\0\0\x80\x3f")
    write_tensors(model / "model.safetensors", tensors)
    config = json.loads((model / "config.json").read_text())
    config["tie_word_embeddings"] = True
    (model / "config.json").write_text(json.dumps(config))
    t.write("run.yaml", re.sub(r"model: .*", "model: {path: model, context: 64}", SMALL).replace(
        "pretrain: {max_steps: 0, batch: 8, check_problems: 8}\n", ""))
    codes = {"model": t.temper("model", "model").code, "check": t.temper("check", "run.yaml").code}
    ended = t.temper("run", "run.yaml", "--plain", "--set", "run_dir=run")
    return 0 in codes.values(), ", ".join(f"{k} exit {v}" for k, v in codes.items()) + \
        f", run {ended.how} after {ended.seconds:.0f} s: {ended.line('lm_head')}"


@trial("P7", "Signals while the base is made end with other exit codes",
       "ASignalToARealRun.WhileItsBaseIsMadeEndsItWithItsExitCodeAndLeavesNothingInTheCache",
       "ASignal.EndsTheRunWithItsExitCode")
def signals(t):
    codes = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
        config = t.write("run.yaml", SMALL.replace("max_steps: 0", "max_steps: 100000, target_accuracy: 1, label_noise: 0.3"))
        process = t.start("run", config, "--plain", "--set", f"run_dir={name}")
        wait_for(lambda: (t.folder / name).exists(), 20)
        time.sleep(2)  # Part of what is tried: the base is being made.
        process.send_signal(getattr(signal, name))
        ended = t.wait(process, 20)
        codes[name] = ended.code
    wanted = {"SIGINT": 130, "SIGTERM": 130, "SIGHUP": 130, "SIGUSR1": 0}
    return codes != wanted, ", ".join(f"{k} {v}" for k, v in codes.items())


@trial("P8", "`run_dir: ~/runs/x` makes a folder named `~`", "HomePath.ExpandsALeadingTildeOrHome",
       "HomePath.RejectsOtherShellExpansions", "ConfigPaths.ExpandTheHomeDirectoryInFilesAndSets")
def tilde(t):
    t.temper("run", t.write("run.yaml", SYNTHETIC + "run_dir: ~/runs/x\n"), "--plain")
    other = t.temper("check", t.write("other.yaml", SYNTHETIC + "run_dir: ${oc.env:HOME}/runs/x\n"))
    literal, home = (t.folder / "~").exists(), (t.home / "runs/x").exists()
    where = "a folder named ~" if literal else "the home folder" if home else "neither"
    return literal or not home or other.code == 0, f"written to {where}; `${{oc.env:HOME}}`: check {other.how}"


@trial("P9", "Quoted names are refused", "Yaml.QuotedNamesAndQuantitiesAreAccepted",
       "Yaml.QuotesDoNotMakeInvalidValuesValid")
def quoted(t):
    t.write("run.yaml", SMALL.replace("kind: addition", 'kind: "addition"'))
    ended = t.temper("check", "run.yaml", "--set", 'algorithm.name="grpo"')
    return ended.code != 0, f"check {ended.how}{': ' if ended.code else ''}{ended.line('found the text')}"


def steps_of_tensorboard(folder):
    """The steps that TensorBoard shows: field 2 of each event, without those that a later session
    start (field 7) makes void."""
    steps = []
    for path in sorted(folder.glob("*")):
        data, at = path.read_bytes(), 0
        while at + 12 <= len(data):
            length = struct.unpack("<Q", data[at:at + 8])[0]
            event = data[at + 12:at + 12 + length]
            at += 16 + length
            place = 9  # behind field 1, the time
            if len(event) > place and event[place] == 0x10:
                step, shift = 0, 0
                while True:
                    place += 1
                    step |= (event[place] & 0x7f) << shift
                    shift += 7
                    if event[place] < 0x80:
                        break
                if event[place + 1:place + 2] == b"\x3a":
                    steps = [earlier for earlier in steps if earlier < step]
                else:
                    steps.append(step)
    return steps


@trial("P11", "After a resume, TensorBoard and samples.jsonl have steps twice",
       "Tensorboard.ShowsEveryStepOnceHoweverOftenTheRunWentBack", "SamplesTest.AResumeRemovesVoidSamples")
def tensorboard(t):
    process = t.start("run", t.write("run.yaml", SYNTHETIC.replace("2ms", "50ms")), "--plain", "--set", "run_dir=run",
                      "--set", "samples.share=1", "--set", "checkpoint.every=8")

    def step():
        try:
            return lines_of(t.folder / "run/metrics.jsonl")[-1]["step"] >= 14
        except (OSError, IndexError):
            return False
    wait_for(step, 60)
    process.kill()
    process.wait()
    t.temper("run", "--resume", "run", "--plain")
    steps = steps_of_tensorboard(t.folder / "run/tensorboard")
    again = len(steps) - len(set(steps))
    rows = [(row["group"], row["place"]) for row in lines_of(t.folder / "run/samples.jsonl")
            if row["outcome"] == "trained"]
    twice = len(rows) - len(set(rows))
    return again + twice > 0, f"{len(steps)} points for {max(steps, default=0)} steps, {twice} responses twice"


# A: awkward.


@trial("A1, USER 4", "`check` accepts a Python function that is not there; the run starts it four times",
       "test_a_role_that_cannot_be_imported_is_refused_before_the_run",
       "test_a_start_that_cannot_succeed_is_not_repeated")
def missing_function(t):
    t.write("my_rewards.py", "def right(completions, **c): return [1.0] * len(completions)\n")
    sets = ["verifier.kind=python", "verifier.function=my_rewards:rigth"]
    check = t.temper("check", t.write("run.yaml", SMALL), *(w for one in sets for w in ("--set", one)))
    ended = t.run(SMALL, *sets, limit=120)
    return check.code == 0 or ended.seconds > 15, \
        f"check {check.how}; run {ended.how} after {ended.seconds:.0f} s: {ended.line('rigth')}"


@trial("A2", "A reward function that returns dicts is reported with our file, not its name",
       "test_a_reward_that_is_no_number_names_who_gave_it")
def dict_rewards(t):
    t.write("odd.py", 'def dicts(completions, **c): return [{"score": 1.0} for x in completions]\n')
    ended = t.run(SMALL, "verifier.kind=python", "verifier.function=odd:dicts", limit=120)
    line = ended.line("dict")
    return "odd:dicts" not in line and "odd.py" not in line, f"{ended.how}: {line}"


@trial("A3", "A password in an address is repeated, and `/v1` found wrong only by a run", "Url.NeverRepeatsAPassword",
       "Url.AcceptsAddressesOfOpenaiClients")
def passwords(t):
    t.write("run.yaml", SMALL)
    words = ["check", "run.yaml", "--set", "rollout.engine.kind=openai", "--set", "rollout.engine.start=x",
             "--set"]
    secret = t.temper(*words, 'rollout.engine.data=["http://u:secret@127.0.0.1:27001"]')
    return ":secret" in secret.text, secret.line("27001")


@trial("A4", "A long TMPDIR ends a run without the word TMPDIR", "IpcFolder.NamesTheVariableAndTheLimitForALongTmpdir")
def long_tmpdir(t):
    long = t.folder / ("x" * 120)
    long.mkdir()
    ended = t.run(SYNTHETIC, TMPDIR=str(long))
    return "TMPDIR" not in ended.text, ended.outcome


@trial("A5", "`eval` of a task that holds out few problems ends with a key of the configuration",
       "EvaluationSource.OfTooFewProblemsNamesTheKeyAndWhatToDo",
       "EvaluationProblems.AreProvidedOrRefusedWithTheirNumber")
def few_problems(t):
    t.write("rows.jsonl", PROBLEMS)
    t.run(TASK, "steps=1", "verifier.kind=exact", "task.held_out=0.1")
    ended = t.temper("eval", "run")
    return ended.code != 0, f"{ended.how}: {ended.line('pass|problems')}"


@trial("A6", "` #` begins a comment on the command line", "Yaml.ACommandLineHasNoComments")
def comment(t):
    t.run(SYNTHETIC, to="exp #1")
    cut = (t.folder / "exp").exists()
    return cut, "written to `exp`" if cut else "written to `exp #1`" if (t.folder / "exp #1").exists() else "neither"


@trial("A7", "A git-lfs pointer is reported as a huge header", "ReadFile.NamesAGitLfsPointer")
def lfs(t):
    model = exported_model(t)
    (model / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 123\n")
    ended = t.temper("model", "model")
    return "lfs" not in ended.text, f"{ended.how}: {ended.line('safetensors')}"


# USER: the list of a new user.

WRONG = '''
import json, sys
for line in sys.stdin: print(json.dumps({"score": 1}), flush=True)
'''


@trial("USER 1", "A verifier that answers wrongly costs minutes, and another reason is named",
       "NeverRewarding.IsGivenUpAfterThreeFailures",
       "Failures.OfAVerifierThatHasNeverGivenARewardEndTheRunAtOnce")
def wrong_verifier(t):
    t.write("judge.py", WRONG)
    t.write("rows.jsonl", PROBLEMS)
    t.temper("init", "my.yaml", "--task", "rows.jsonl")
    config = (t.folder / "my.yaml").read_text()
    config = re.sub(r"^verifier:\n(  .*\n)+", "verifier: {kind: command, command: [python3, judge.py]}\n", config,
                    flags=re.M)
    ended = t.run(config, limit=60)
    return ended.code is None or "has no `reward`" not in ended.line("^temper: "), \
        f"{ended.how}, {ended.seconds:.0f} s: {ended.line('reply|lost|reward-0')}"


@trial("USER 2", "A real config.json is refused for keys that mean nothing", "ConfigJson.AcceptsIrrelevantKeys",
       "ConfigJson.ReadsPublishedFiles")
def harmless_keys(t):
    model = exported_model(t)
    config = json.loads((model / "config.json").read_text())
    config.update({"_model_name_or_path": "x", "unk_token_id": 0, "is_llama_config": True, "attn_implementation": None,
                   "transformers.js_config": {"dtype": "q4"}})
    (model / "config.json").write_text(json.dumps(config))
    ended = t.temper("model", "model")
    return ended.code != 0, f"{ended.how}{': ' if ended.code else ''}{ended.line('setting|unknown|keys') if ended.code else ''}"


@trial("USER 3", "`init` writes a learning rate of a pretrained model for a new network",
       "Init.ASmallNetworkHasTheRateOfOneAndATrainedModelThatOfATrainedModel")
def init_rate(t):
    t.write("rows.jsonl", PROBLEMS)
    t.temper("init", "my.yaml", "--task", "rows.jsonl")
    text = (t.folder / "my.yaml").read_text()
    rate = re.search(r"learning_rate: (\S+)", text)
    steps = re.search(r"minibatches: (\d+)", text)
    return rate is None or float(rate[1]) < 1e-4, \
        f"learning_rate {rate and rate[1]}, minibatches {steps[1] if steps else 'default'}"


SLOW = '''
import time
import numpy as np, temper
class Engine(temper.Engine):
    def __init__(self):
        end = time.monotonic() + 12
        while time.monotonic() < end: sum(range(100000))
    def generate(self, requests):
        for r in requests: yield r.done(np.full(4, 3, np.int32), np.full(4, -1.0, np.float32), "length")
'''


@trial("USER 5", "`deadlines.start` ends a worker that is only slow to load",
       "WorkerTest.HeartbeatsReportThatTheRoleIsLoading", "Starts.ThatHangEndAtTheirDeadline",
       "SlowStart.OfAWorkerThatLoadsIsWaitedFor", "test_one_that_loads_for_long_is_waited_for")
def slow_start(t):
    t.write("slow.py", SLOW)
    ended = t.run(SYNTHETIC, "rollout.engine.kind=python", "rollout.engine.use=slow:Engine", "deadlines.start=5s",
                  "transport.max_restarts=1", limit=90)
    return ended.code != 0, f"12 s of loading, deadline 5 s: {ended.outcome}"


@trial("USER 6a", "The longest wait is longer than all waits together",
       "Timeline.TheLongestWaitNeverExceedsTheTotalOfItsReason")
def longest_wait(t):
    t.run(SYNTHETIC, "steps=40")
    waits = json.loads((t.folder / "run/summary.json").read_text())["waits"]
    longer = [w for w in waits if longest_of(w) > total_of(w) * 1.001]
    return bool(longer), f"{len(longer)} of {len(waits)} waits" + \
        (f", such as {longest_of(longer[0]):.2f} s of {total_of(longer[0]):.2f} s" if longer else "")


def longest_of(wait):
    return next(v for k, v in wait.items() if k.startswith("longest") and isinstance(v, (int, float)))


def total_of(wait):
    return next(v for k, v in wait.items() if k in ("seconds", "card_s", "total_s", "s"))


@trial("USER 6b", "The list calls a failed run `over`", "SiteTest.ARunThatEndedIsListedAsWhatItsEndWas")
def failed_listed(t):
    t.write("judge.py", "raise SystemExit(3)\n")
    t.run(SYNTHETIC, "verifier.kind=command", "verifier.command=[python3, judge.py]", to="runs/bad", limit=120)
    _, port, token = t.serve("runs")
    _, body = get(port, "/api/runs", token)
    state = re.search(r'"state":\s*"(\w+)"', body)
    return "failed" not in body, f"state: {state[1] if state else shorten(body, 60)}"


@trial("USER 7", "`busy` without MFU, and slots without a place", "Usage.MfuIsFlopsOverTimeAndPeak",
       "Slots.AnEngineWithOneResponseOfFourIsAQuarterFull")
def mfu(t):
    ended = t.temper("run", t.root / "configs/cm384_pangu.yaml", "--driver", "in-process", "--plain", "--set", "steps=2",
                     "--set", "run_dir=run", limit=120)
    line = ended.line(r"^ +cards .* busy")
    return not ("MFU" in line and "slots" in line), line


@trial("USER 11", "A right answer looks wrong: digits are reversed without a word",
       "GroupsTest.ShowTheExpectedAnswerAndWhetherItIsReversed")
def reversed_answer(t):
    t.run(SMALL, "task.digits=2", "steps=2")
    ended = t.temper("samples", "run", "--step", "1")
    return "reversed" not in ended.text, "says reversed" if "reversed" in ended.text else "says nothing of it"


@trial("USER 12", "The Kubernetes manifest has neither configuration nor folder",
       "JobSet.CarriesTheConfigurationAndSmallDataAndNamesTheRest", "ConfigMap.GivesEachFileBackAsItWas")
def kubernetes(t):
    t.write("qs.yaml", SMALL)
    ended = t.temper("launch", "k8s", "qs.yaml", "--nodes", "2", "--image", "registry/temper:1", "--claim", "shared")
    has = {"ConfigMap": "kind: ConfigMap" in ended.text, "workingDir": "workingDir" in ended.text}
    return not all(has.values()), f"{ended.how}, " + ", ".join(("" if yes else "no ") + name for name, yes in has.items())


@trial("USER 13", "Worst groups cannot be seen, and a step may have no sample",
       "GroupsTest.AreOrderedByMeanRewardWithUnjudgedOnesLast", "SamplesTest.EveryStepHasASample")
def worst_groups(t):
    t.run(SYNTHETIC, "algorithm.groups_per_update=16", "steps=12")
    ended = t.temper("samples", "run", "--step", "7", "--worst")
    return ended.code != 0, f"{ended.how}: {shorten(ended.text, 80)}"


@trial("USER 14", "`init` evaluates a handful of problems, without an error bar",
       "Init.HoldsOutEnoughProblemsOfAnyFileThatHasThem")
def handful(t):
    t.write("rows.jsonl", PROBLEMS)
    t.temper("init", "my.yaml", "--task", "rows.jsonl")
    config = (t.folder / "my.yaml").read_text()
    problems = int(re.search(r"problems: (\d+)", config)[1])
    t.run(config, "steps=1", "evaluation.every=1")
    points = json.loads((t.folder / "run/summary.json").read_text())["evaluation"]["points"]
    bar = any("low" in key for key in points[0])
    return problems < 50 or not bar, f"{problems} problems, {'with' if bar else 'no'} interval"


@trial("USER 15", "\"empty.jsonl has no problem in it\" reads as \"all is well\"", "Jsonl.RejectsAFileWithoutProblems")
def empty_file(t):
    t.write("rows.jsonl", "")
    ended = t.temper("check", t.write("run.yaml", TASK))
    return "has no problem in it" in ended.text, f"{ended.how}: {ended.line('rows.jsonl')}"


# These need the program that predicts (temper-study).


@trial("USER 8", "`measure` prints nothing while it measures", "ProgressLine.WritesALinePerStageAndPeriodToAFile")
def silent_measure(t):
    t.needs("temper-study")
    process = t.start("measure", t.write("run.yaml", SMALL))
    began = last = time.monotonic()
    longest, lines = 0, 0
    while process.poll() is None and (left := began + 60 - time.monotonic()) > 0:
        if select.select([process.stdout], [], [], left)[0] and os.read(process.stdout.fileno(), 1 << 16):
            longest, last, lines = max(longest, time.monotonic() - last), time.monotonic(), lines + 1
    longest = max(longest, time.monotonic() - last)
    return longest > 30, f"in {time.monotonic() - began:.0f} s {lines} times, at most {longest:.0f} s apart"


@trial("USER 9", "`faults` prints a table for checkpoints that are free and never made",
       "Faults.NeedsCheckpointsThatTakeTime")
def free_checkpoints(t):
    t.needs("temper-study")
    ended = t.temper("faults", t.root / "configs/cm384_pangu.yaml", "--set", "simulation.faults.rate=1", "--days", "1",
                     "--weight", "64", limit=300)
    return ended.code == 0, f"{ended.how}: {ended.line('checkpoint')}"


@trial("USER 10", "24 names of constants end every simulated answer", "NoLaboratory.TheNoteCountsTheConstantsThatWereNotMeasured")
def constants(t):
    ended = t.temper("run", t.root / "configs/cm384_pangu.yaml", "--driver", "in-process", "--plain", "--set", "steps=1",
                     "--set", "run_dir=run", limit=120)
    longest = max(map(len, ended.text.splitlines()), default=0)
    return longest > 250, f"longest line of `run`: {longest} characters"


UNITS["USER 6c"] = ("Advice that gains nothing, or that the run follows already",
                    ["SiteTest.ALossHasTheGainThatItsCommandPredictedAndNoneBefore",
                     "SiteTest.LossesSayWhatAndAtMostHowMuch"])
UNITS["USER 6d"] = ("Axis labels that are rounded", ["each tick of an axis is written exactly, all in one unit"])
