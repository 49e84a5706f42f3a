"""PPO with a critic: temper.torch beside the C++ trainer, and both beside an implementation written once more in torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch_parity_test as parity
from torch_parity_test import CLOSE, InProcess, Worker, base, differ, native  # noqa: F401 (fixtures)

from temper import messages as m

pytestmark = pytest.mark.needs("torch", "transformers", "safetensors")

#: Settings beside `name: ppo_critic`.
VARIANTS = {
    "defaults": {},
    "value clip and its own rate": {"critic.value_clip": 0.05, "critic.learning_rate": 0.02},
    "KL in the reward": {"critic.kl": 0.3, "kl": 0, "critic.discount": 0.9, "critic.gae_lambda": 1},
    "warm-up": {"critic.warm_up_steps": 1},
    "falling rates": {"learning_rate_schedule": "{warm_up_steps: 2, decay: linear, decay_steps: 3}"},
    "not whitened": {"advantage_std": "none", "overlong_buffer": 4},
    "decoupled": {"objective": "decoupled", "critic.gae_lambda": 0},
}


def ppo(temper: str, **over: object) -> m.AlgorithmConfig:
    return parity.algorithm(m.AlgorithmName.PPO_CRITIC, temper, **over)


def work_of(step: int) -> m.Train:
    """Groups of one response; some have tokens of a tool, and rewards of an environment."""
    work = parity.work_of(step)
    random = np.random.default_rng(100 + step)
    work.certificate.groups = []
    for group, item in enumerate(work.items):
        item.group = group
        work.certificate.groups.append(m.CertificateEntry(group, 0))
        size = item.response.size
        if size > 3 and group % 2:
            item.mask = np.ones(size, np.uint8)
            item.mask[1:3] = 0
            item.rewards = random.normal(0, 0.3, size).astype(np.float32)
            item.reward += float(item.rewards.sum())
    return work


def far(ours, theirs) -> dict[str, float]:
    assert set(ours) == set(theirs)
    return {k: d for k in ours if (d := differ(np.asarray(ours[k]), np.asarray(theirs[k]))) > CLOSE}


def state(folder: Path) -> dict[str, np.ndarray]:
    """Every tensor of a checkpoint."""
    import safetensors.numpy

    return {f"{file.name}: {name}": tensor for file in folder.glob("*.safetensors")
            for name, tensor in safetensors.numpy.load_file(file).items()}


def train(worker: Worker | InProcess, steps: range, folder: Path) -> tuple[list[m.UpdateMetrics], list[str]]:
    """The metrics of these steps, and the names of the tensors that were published; saves the state after them."""
    worker.await_one(m.TrainerReady)
    metrics, names = [], []
    for step in steps:
        worker.send(work_of(step))
        done = worker.await_one(m.Trained)
        metrics.append(done.metrics)
        names = list(worker.weights(done.weights))
    folder.mkdir(parents=True)
    worker.send(m.SaveState(steps.stop, str(folder)))
    assert worker.await_one(m.StateSaved).error == ""
    return metrics, names


def trainer(kind: str, a: m.AlgorithmConfig, base: Path, native: str, folder: Path, **given) -> Worker | InProcess:
    role = parity.trainer_role(base, a, None if kind == "cpp" else "temper.torch:Trainer", **given.pop("arguments", {}))
    role.resume_from, role.version = str(given.get("resume_from", "")), int(given.get("version", 0))
    return Worker(folder, role, native) if kind == "cpp" else InProcess(role)


CRITIC_METRICS = ("critic_loss", "critic_value_mean", "critic_explained_variance", "critic_clip_fraction")


def assert_metrics_agree(ours: m.UpdateMetrics, theirs: m.UpdateMetrics) -> None:
    parity.assert_metrics_agree(ours, theirs)
    for name in CRITIC_METRICS:
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize("over", VARIANTS.values(), ids=VARIANTS)
def test_updates_of_the_two_trainers_agree(over, base, temper, native, tmp_path):
    a = ppo(temper, **over)
    results = []
    for kind in ("cpp", "python"):
        with trainer(kind, a, base, native, tmp_path / f"worker-{kind}") as worker:
            results.append((*train(worker, range(3), tmp_path / kind), state(tmp_path / kind)))
    (cpp, their_names, theirs), (python, names, ours) = results
    for one, other in zip(python, cpp):
        assert_metrics_agree(one, other)
    assert far(ours, theirs) == {}
    assert set(names) == set(their_names) and not any("score" in name for name in names), "the critic is published nowhere"
    assert json.loads((tmp_path / "cpp/trainer.json").read_text()) == json.loads((tmp_path / "python/trainer.json").read_text())


@pytest.mark.parametrize("first", ["cpp", "python"])
def test_a_checkpoint_of_either_trainer_is_gone_on_from_by_the_other(first, base, temper, native, tmp_path):
    a = ppo(temper, **{"critic.warm_up_steps": 1, "critic.value_clip": 0.1})
    second = "python" if first == "cpp" else "cpp"
    with trainer(first, a, base, native, tmp_path / "one") as worker:
        train(worker, range(2), tmp_path / "checkpoint")
        parity.prove(tmp_path / "checkpoint")
        worker.send(work_of(2))
        worker.await_one(m.Trained)
        (tmp_path / "straight").mkdir()
        worker.send(m.SaveState(3, str(tmp_path / "straight")))
        assert worker.await_one(m.StateSaved).error == ""
    with trainer(second, a, base, native, tmp_path / "other", resume_from=tmp_path / "checkpoint", version=2) as worker:
        train(worker, range(2, 3), tmp_path / "resumed")
    assert far(state(tmp_path / "resumed"), state(tmp_path / "straight")) == {}


def test_two_ranks_make_the_update_that_one_makes(base, temper, native, tmp_path):
    a = ppo(temper, **{"critic.value_clip": 0.1})
    results = []
    for ranks in (1, 2):
        with trainer("python", a, base, native, tmp_path, arguments={"ranks": ranks}) as worker:
            metrics, _ = train(worker, range(2), tmp_path / str(ranks))
            results.append((metrics, state(tmp_path / str(ranks))))
    (one, one_state), (two, two_state) = results
    for ours, theirs in zip(two, one):
        assert_metrics_agree(ours, theirs)
    assert far(two_state, one_state) == {}


def test_a_checkpoint_without_a_critic_is_refused(base, temper, native, tmp_path):
    from temper.errors import RoleError

    a = parity.algorithm(m.AlgorithmName.PPO, temper)
    with trainer("python", a, base, native, tmp_path) as worker:
        parity.updates(worker, tmp_path / "first", 1)
    with pytest.raises(RoleError, match="made without a critic"):
        with trainer("python", ppo(temper), base, native, tmp_path, resume_from=tmp_path / "first", version=1):
            pass


class Plain:
    """PPO with a critic as in the papers, one response at a time, for one minibatch. Shares no code with Temper."""

    def __init__(self, base: Path, a: m.AlgorithmConfig) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self.torch, self.a = torch, a
        self.policy = AutoModelForCausalLM.from_pretrained(base).double()
        self.critic = AutoModelForCausalLM.from_pretrained(base).double()
        self.head = torch.zeros(self.policy.config.hidden_size, dtype=torch.float64, requires_grad=True)
        trunk = [p for n, p in self.critic.named_parameters() if n != "lm_head.weight"]
        self.optimizers = [
            self.adamw(list(self.policy.parameters()), a.learning_rate),
            self.adamw([*trunk, self.head], a.critic.learning_rate or a.learning_rate, decay_also=self.head)]

    def adamw(self, parameters, rate, decay_also=None):
        decays = [p for p in parameters if p.ndim > 1 or p is decay_also]
        others = [p for p in parameters if p.ndim == 1 and p is not decay_also]
        return self.torch.optim.AdamW([{"params": decays, "weight_decay": self.a.weight_decay}, {"params": others, "weight_decay": 0.0}],
                                      lr=rate, betas=(self.a.beta1, self.a.beta2), eps=self.a.adam_epsilon)

    def of_response(self, item, values: bool):
        """Values before the response tokens, or their log-probs."""
        ids = self.torch.tensor([[*item.prompt.tolist(), *item.response.tolist()]])
        first = item.prompt.size - 1
        if values:
            hidden = self.critic.model(input_ids=ids).last_hidden_state[0]
            return (hidden @ self.head)[first:-1]
        logits = self.policy(input_ids=ids).logits[0, first:-1] / 0.9
        return self.torch.log_softmax(logits, -1).gather(1, self.torch.tensor(item.response.astype(np.int64))[:, None])[:, 0]

    def advantages(self, item, values):
        """GAE as a sum over temporal differences, by a matrix of weights."""
        c, torch = self.a.critic, self.torch
        behaviour, reference = (torch.tensor(x.astype(np.float64)) for x in (item.logprobs, item.reference))
        rewards = -c.kl * (behaviour - reference)
        rewards[-1] += item.reward
        after = torch.cat([values[1:], torch.zeros(1, dtype=torch.float64)])
        delta = rewards + c.discount * after - values
        n = torch.arange(values.numel())
        apart = n[None, :] - n[:, None]
        return (torch.where(apart >= 0, (c.discount * c.gae_lambda) ** apart.clamp(min=0).double(), 0.0) * delta[None, :]).sum(1)

    def step(self, items) -> tuple[float, float]:
        """Trains one step. Returns the losses of policy and critic."""
        torch, a = self.torch, self.a
        with torch.no_grad():
            before = [self.of_response(i, values=True) for i in items]
        raw = [self.advantages(i, v) for i, v in zip(items, before)]
        every = torch.cat(raw)
        white = (every - every.mean()) / (every.std(unbiased=False) + a.advantage_epsilon)
        behaviour = torch.tensor(np.concatenate([i.logprobs for i in items]).astype(np.float64))
        ratio = (torch.cat([self.of_response(i, values=False) for i in items]) - behaviour).exp()
        policy_loss = -torch.minimum(ratio * white, ratio.clamp(1 - a.clip_low, 1 + a.clip_high) * white).mean()
        old, values = torch.cat(before), torch.cat([self.of_response(i, values=True) for i in items])
        returns = every + old
        near = old + (values - old).clamp(-a.critic.value_clip, a.critic.value_clip)
        value_loss = 0.5 * torch.maximum((values - returns) ** 2, (near - returns) ** 2).mean()
        for loss, optimizer in zip((policy_loss, value_loss), self.optimizers):
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], a.gradient_clip)
            optimizer.step()
        return policy_loss.item(), value_loss.item()

    def weights(self) -> tuple[dict, dict]:
        of_critic = {n: p for n, p in self.critic.named_parameters() if n != "lm_head.weight"}
        of_critic["score.weight"] = self.head[None, :]
        return tuple({n: p.detach().numpy() for n, p in of.items()} for of in (dict(self.policy.named_parameters()), of_critic))


@pytest.mark.parametrize("kind", ["cpp", "python"])
def test_losses_and_weights_are_those_of_a_plain_implementation(kind, base, temper, native, tmp_path):
    import safetensors.numpy

    a = ppo(temper, **{"minibatches": 1, "kl": 0, "critic.kl": 0.2, "critic.discount": 0.95, "critic.gae_lambda": 0.8,
                       "critic.value_clip": 0.02, "critic.learning_rate": 5e-3})
    plain = Plain(base, a)
    expected = []
    with trainer(kind, a, base, native, tmp_path / "worker") as worker:
        worker.await_one(m.TrainerReady)
        for step in range(3):
            work = parity.work_of(step)  # groups of four: the critic takes any size
            expected.append(plain.step(work.items))
            worker.send(work)
            metrics = worker.await_one(m.Trained).metrics
            assert metrics.loss == pytest.approx(expected[-1][0], rel=CLOSE, abs=1e-6)
            assert metrics.critic_loss == pytest.approx(expected[-1][1], rel=CLOSE, abs=1e-6)
        (tmp_path / "end").mkdir()
        worker.send(m.SaveState(3, str(tmp_path / "end")))
        assert worker.await_one(m.StateSaved).error == ""
    policy, critic = plain.weights()
    assert far(safetensors.numpy.load_file(tmp_path / "end/model.safetensors"), policy) == {}
    assert far(safetensors.numpy.load_file(tmp_path / "end/critic.safetensors"), critic) == {}
