"""What a user does in a day, with the Debian package alone: no source tree, no compiler (docs/reports/installed-package.md)."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed import HOME, Root, Unable, install, make, package

pytestmark = pytest.mark.timeout(2400)

PROBLEMS = "".join(json.dumps({"prompt": f"{a}+{b}=", "answer": str(a + b)}) + "\n" for a in range(10) for b in range(10))
JUDGE = """import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    right = asked["response"].strip() == asked["answer"]
    print(json.dumps({"reward": 1.0 if right else 0.0}), flush=True)
"""
REWARDS = """def right(completions, answer, **columns):
    return [float(c.strip() == a) for c, a in zip(completions, answer)]
"""
#: Small enough for a minute: what is shown is the way, not the learning.
SMALL = ("--set steps=4 --set algorithm.groups_per_update=4 --set algorithm.responses_per_group=4 --set sampling.max_new_tokens=4 "
         "--set pretrain.max_steps=20 --set evaluation.every=2 --set evaluation.problems=4 --set checkpoint.every=2")


@pytest.fixture(scope="module")
def root(temper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    deb = package(Path(temper).parents[1], tmp_path_factory.mktemp("package"))
    try:
        root = make(tmp_path_factory.mktemp("root"))
        install(root, deb)
    except Unable as why:
        pytest.skip(str(why))
    root.write("data/train.jsonl", PROBLEMS)
    root.write("judge.py", JUDGE)
    root.write("my_rewards.py", REWARDS)
    root.run(f"chown -R someone:someone {HOME}", user="root")
    yield root
    subprocess.run(["rm", "-rf", "--one-file-system", str(root.folder)], check=False)


@pytest.fixture(scope="module")
def first(root: Root) -> str:
    """A run of a user's own problems, judged by a program of theirs (a)."""
    root.must("temper init my.yaml --task data/train.jsonl")
    command = "--set 'verifier.kind=command' --set 'verifier.command=[python3, judge.py]' --set task.tokenizer=characters"
    root.must(f"temper check my.yaml {command} {SMALL} --set model.context=16")
    said = root.must(f"temper run my.yaml {command} {SMALL} --set model.context=16 --set run_dir=runs/first --plain", timeout=900)
    assert "finished after 4 steps" in said
    return "runs/first"


def test_the_machine_is_examined_and_nothing_that_every_run_needs_is_missing(root: Root) -> None:
    said = root.must("temper doctor")
    assert re.search(r"fine +Python +/usr/bin/python3 with temper", said), said
    assert "missing" not in said


def test_version_manual_and_completion_are_there(root: Root) -> None:
    assert re.match(r"temper \d", root.must("temper --version"))
    for file in ("man/man1/temper.1", "bash-completion/completions/temper", "zsh/vendor-completions/_temper",
                 "fish/vendor_completions.d/temper.fish", "temper/docs/cluster/my-h100.yaml", "temper/bench/gpu/measure_card.py"):
        found = list((root.folder / "usr/share").glob(file + "*"))
        assert found and found[0].stat().st_size > 0, file


def test_a_own_problems_and_a_program_that_judges(root: Root, first: str) -> None:
    assert root.must(f"temper samples {first} --worst").strip()
    assert "pass@1" in root.must(f"temper report {first}")


def test_b_a_model_of_another_size(root: Root) -> None:
    said = root.must(f"temper run quickstart {SMALL} --set model.hidden=32 --set model.layers=2 --set run_dir=runs/small --plain",
                     timeout=900)
    assert "finished after 4 steps" in said


def test_c_a_folder_of_hugging_face_in_and_out(root: Root, first: str) -> None:
    root.must(f"temper export {first} exported")
    root.must("temper model exported")
    said = root.must(f"temper run my.yaml {SMALL} --set model.path=exported --set model.context=16 "
                     "--set run_dir=runs/folder --set steps=2 --plain", timeout=900)
    assert "finished after 2 steps" in said


def test_d_a_reward_function_in_python(root: Root) -> None:
    said = root.must(f"temper run my.yaml {SMALL} --set verifier.kind=python --set verifier.function=my_rewards:right "
                     "--set task.tokenizer=characters --set model.context=16 --set run_dir=runs/python --plain", timeout=900)
    assert "finished after 4 steps" in said


def test_e_a_server_generates(root: Root) -> None:
    """The servers themselves are no part of the package: that theirs is the worker, and what it says where none is."""
    said = root.must(f"temper check quickstart {SMALL} --set rollout.engine.kind=vllm", status=2)
    assert "rollout.engine" in said, said
    assert "python -m sglang.launch_server" in root.must(
        "cd /usr/share/temper && temper plan task=rollout model=docs/cluster/my-model/config.json "
        "hardware=docs/cluster/my-h100.yaml cards=32 prompt=512 response=4000 cap=16384 --emit sglang")


def test_f_a_trainer_in_python(root: Root) -> None:
    said = root.must("cp -r /usr/share/temper/python/examples . && cd examples && temper run numpy_quickstart.yaml "
                     f"{SMALL} --set algorithm.kl=0 --set run_dir={HOME}/runs/numpy --plain", timeout=900)
    assert "finished after 4 steps" in said


def test_g_workers_that_others_start_and_a_job_script(root: Root) -> None:
    assert "#SBATCH --nodes=4" in root.must("temper launch slurm quickstart --nodes 4 --run-dir /shared/run")
    root.must(f"""
      temper run quickstart {SMALL} --set policy=synthetic --set evaluation.every=0 --set rollout.launch=attach \
        --set transport.kind=tcp --set run_dir=runs/attached --plain > attached.log 2>&1 & run=$!
      while [ ! -f runs/attached/endpoint ]; do kill -0 $run || break; sleep 0.1; done
      temper worker --connect runs/attached/endpoint --key runs/attached/keys/worker.key --role rollout > worker.log 2>&1
      wait $run || {{ cat attached.log worker.log; exit 1; }}""".strip(), timeout=600)


def test_h_several_turns_and_a_tool(root: Root) -> None:
    said = root.must("cd /usr/share/temper && temper run python/examples/ask_the_tool.yaml --set steps=2 "
                     f"--set rollout.concurrency=32 --set run_dir={HOME}/runs/tool --plain", timeout=900)
    assert "finished after 2 steps" in said


def test_i_a_page_a_file_and_figures_for_prometheus(root: Root, first: str) -> None:
    assert (root.folder / HOME[1:] / root.must(f"temper report {first} --html").strip()).stat().st_size > 10_000
    assert list((root.folder / HOME[1:] / first / "tensorboard").iterdir())
    with subprocess.Popen(root.command("exec temper serve runs --address 127.0.0.1:0"), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as server:
        try:
            address, token = re.search(r"(http://\S+)\?(token=\S+)", server.stdout.readline()).groups()
            with urllib.request.urlopen(f"{address}metrics?{token}", timeout=30) as answer:
                assert "temper_" in answer.read().decode()
        finally:
            server.terminate()


def test_j_runs_are_listed_and_compared(root: Root, first: str) -> None:
    assert "first" in root.must("temper runs")
    root.must(f"temper run my.yaml {SMALL} --set model.context=16 --set task.tokenizer=characters "
              "--set algorithm.learning_rate=0.001 --set run_dir=runs/second --plain", timeout=900)
    assert "algorithm.learning_rate" in root.must(f"temper diff {first} runs/second")


def test_k_a_run_goes_on_longer_under_other_settings_and_is_branched(root: Root, first: str) -> None:
    said = root.must(f"temper run --resume {first} --set steps=6 --set staleness.bound=3 --plain", timeout=900)
    assert "staleness.bound: 2 -> 3" in said and "finished after 6 steps" in said
    for command in ("audit", "replay", "fsck"):
        root.must(f"temper {command} {first}")
    said = root.must(f"temper run my.yaml {SMALL} --from {first}@4 --set model.context=16 --set task.tokenizer=characters "
                     "--set run_dir=runs/branch --plain", timeout=900)
    assert "starting from the weights of step 4" in said


def test_l_ones_own_cluster_is_planned_and_simulated(root: Root) -> None:
    words = "model=docs/cluster/my-model/config.json hardware=docs/cluster/my-h100.yaml cards=32"
    assert "not measured on" in root.must(f"cd /usr/share/temper && temper plan task=train {words} batch=512 seq=8192")
    assert "finished after" in root.must("cd /usr/share/temper && temper run docs/cluster/pipeline.yaml --driver in-process "
                                         f"--set run_dir={HOME}/runs/cluster --plain")


def test_m_constants_are_fitted_to_ones_own_rows(root: Root) -> None:
    root.must("cp /usr/share/temper/configs/hardware/nvidia-h200.yaml mine.yaml && sed -i 's/^name: .*/name: mine/' mine.yaml && "
              "sed 's/nvidia-h200/mine/' /usr/share/temper/configs/validation/h200.csv > mine.csv && cp /usr/share/temper/configs/validation/lens_*.json .")
    root.must("temper calibrate mine.csv --hardware-file mine.yaml", timeout=600)
    said = root.must("temper validate mine.csv --hardware-file mine.yaml --no-rows")
    assert re.search(r"^train_step +48 +0 ", said, re.M)  # rows, failed


def test_n_a_flipped_bit_is_found(root: Root, first: str) -> None:
    root.must(f"temper audit {first}")
    root.must(f"cp -r {first} runs/flipped")
    log = root.folder / HOME[1:] / "runs/flipped/events.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 4
    log.write_bytes(data)
    assert "events.log" in root.must("temper audit runs/flipped", status=3)


def test_p_a_script_can_tell_how_it_ended(root: Root, first: str) -> None:
    root.must(f"temper report {first} --require 'steps>=2' --require 'staleness.max<=3'")
    root.must(f"temper report {first} --require 'reward.last>2'", status=3)
    root.must("temper run no-such.yaml", status=2)
    assert json.loads(root.run(f"temper report {first} --json").stdout)["steps"] >= 2
