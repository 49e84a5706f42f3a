"""TRL's unmodified AsyncGRPOTrainer as the trainer of a run.

It receives the run's certified batches, and the weights that it syncs become the run's next version.

    # train.py, named by `trainer: {engine: {kind: command, command: [python3, train.py]}}`
    from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
    from temper.trl import Run

    with Run() as run:
        config = AsyncGRPOConfig(output_dir="trl", max_steps=200 - run.version, **run.config())
        AsyncGRPOTrainer(model=str(run.model), args=config, train_dataset=run.dataset(), processing_class=run.tokenizer(),
                         rollout_worker=run, weight_transfer=run, callbacks=[run.callback()]).train()

One batch of the run is one step of TRL. TRL's loader fetches one micro-batch ahead, which would wait for weights that do
not exist yet. Each step therefore starts with a micro-batch of filler samples whose advantage is 0. Needs trl 1.10 or
newer.
"""

from __future__ import annotations

import collections
import pathlib
import queue
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import safetensors.torch
import torch
from transformers import TrainerCallback
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from . import messages as m
from . import roles
from .activity import ActivityLog
from .errors import RoleError
from .loop import registered
from .role_types import Batch, Row
from .runtime import IDLE, Session
from .torch.algorithm import advantages, check_written_out
from .torch.model import model_folder
from .training import TrainerActor

_STATE = "optimizer.pt"


class _Trainer(roles.Trainer):
    """Answers the actor's calls with the weights that TRL last synced."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def publish(self) -> dict[str, torch.Tensor]:
        return self._run._weights

    def save(self, folder: pathlib.Path) -> None:
        self._run._save(folder)

    def load(self, folder: pathlib.Path) -> None:
        """Does nothing: Run._begin() loads the checkpoint once TRL has an optimizer."""


class _Callback(TrainerCallback):  # type: ignore[misc]
    def __init__(self, run: Run) -> None:
        self._run = run

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._run._begin(given["model"], given.get("optimizer"), given.get("lr_scheduler"))

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._run._begun(given.get("optimizer"), given.get("lr_scheduler"))


class Run:
    """The run that started this program. Implements TRL's RolloutWorkerProtocol and WeightTransferProtocol.

    Args:
        model: Model folder; None: the run's.

    Attributes:
        role: Configuration of the run.
        model: Model folder.
    """

    #: Part of the protocol: TRL drains it. It stays empty, because the run records all metrics.
    metrics_queue: queue.Queue[dict[str, float]]

    def __init__(self, model: str | None = None) -> None:
        connection, self._welcome, self.role = registered()
        self.model = model_folder(self.role, model)
        self._algorithm = check_written_out(self.role.settings.algorithm)
        self._session = Session(connection, self._welcome)
        self.metrics_queue = queue.Queue()
        self._ready: collections.deque[RolloutSample] = collections.deque()
        self._weights: dict[str, torch.Tensor] = {}
        self._actor: TrainerActor | None = None
        self._trl_version = 0
        self._work: tuple[m.Train, Batch, int] | None = None  # passed to TRL, not trained yet
        self._micro_batch = 1
        self._begun_training = False
        self._optimizer: Any = None
        self._schedule: Any = None
        self._ended = False

    def __enter__(self) -> Run:
        self._session.__enter__()
        self._session.send(m.Ready())
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._session.__exit__(kind, None if isinstance(error, SystemExit) else error, trace)

    # --- Arguments of TRL's trainer

    @property
    def version(self) -> int:
        """Number of completed steps; above 0 in a resumed run."""
        return self.role.version

    def config(self, micro_batches: int = 1, **more: Any) -> dict[str, Any]:
        """Arguments for AsyncGRPOConfig from the run's YAML.

        Args:
            micro_batches: Number of micro-batches per batch; must divide its number of responses.
            **more: Other arguments, which override those of the run.

        Raises:
            RoleError: `micro_batches` does not divide the number of responses, the learning rate has a schedule or depends
                on the samples, or there is a critic.
        """
        a, settings = self._algorithm, self.role.settings
        if a.scale_by_effective_samples:
            raise RoleError(
                "algorithm.scale_by_effective_samples: expected false, because TRL sets the learning rate; found true"
            )
        schedule = a.learning_rate_schedule
        if schedule.warm_up_steps or schedule.decay != m.Decay.NONE:
            raise RoleError(
                "algorithm.learning_rate_schedule: expected none, because TRL sets the learning rate (lr_scheduler_type, "
                f"warmup_steps); found {schedule.warm_up_steps} warm-up steps and decay {schedule.decay.name.lower()}"
            )
        if a.advantage_mean == m.AdvantageMean.CRITIC:
            raise RoleError(
                "algorithm.advantage_mean: expected a baseline without a critic, because TRL's trainer has none; found "
                "critic"
            )
        rows = a.groups_per_update * a.responses_per_group
        if rows % micro_batches:
            raise RoleError(
                f"micro_batches: expected a divisor of {rows} (responses per step), found {micro_batches}"
            )
        self._micro_batch = rows // micro_batches
        return {
            "per_device_train_batch_size": self._micro_batch,
            "gradient_accumulation_steps": micro_batches + 1,
            "num_generations": a.responses_per_group,
            "max_completion_length": settings.longest_response,
            "temperature": settings.temperature,
            "epsilon": a.clip_low,
            "epsilon_high": a.clip_high,
            "learning_rate": a.learning_rate,
            "adam_beta1": a.beta1,
            "adam_beta2": a.beta2,
            "adam_epsilon": a.adam_epsilon,
            "weight_decay": a.weight_decay,
            "max_grad_norm": a.gradient_clip,
            "token_budget": 0,
            "weight_sync_steps": 1,
            "report_to": "none",
            "save_strategy": "no",  # the run requests checkpoints
            **more,
        }

    def dataset(self) -> Any:
        """A placeholder data set: TRL requires one, but the run provides the prompts."""
        from datasets import Dataset

        return Dataset.from_dict({"prompt": [""]})

    def tokenizer(self) -> Any:
        """The tokenizer of the model folder, or one for the run's alphabet."""
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        if (self.model / "tokenizer.json").is_file():
            return AutoTokenizer.from_pretrained(
                self.model, padding_side="left", local_files_only=True
            )
        from tokenizers import Tokenizer, models, pre_tokenizers

        v = self.role.vocabulary
        names = {f"<{i}>": i for i in range(v.size)}
        for i, letter in enumerate(v.alphabet):
            del names[f"<{v.first + i}>"]
            names[letter] = v.first + i
        tokenizer = Tokenizer(models.WordLevel(names, unk_token=f"<{v.pad}>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            pad_token=f"<{v.pad}>",
            eos_token=f"<{v.end}>",
            padding_side="left",
        )

    def callback(self) -> TrainerCallback:
        """A TRL callback that gives checkpoints access to the optimizer."""
        return _Callback(self)

    # --- TRL's RolloutWorkerProtocol

    @property
    def rollout_buffer(self) -> Run:
        """The buffer that TRL drains: this object."""
        return self

    def get(self, timeout: float | None = None) -> RolloutSample:
        """Returns the next sample. It runs on TRL's thread, so it also handles the run's messages.

        Args:
            timeout: Seconds to wait; None: without limit.

        Raises:
            queue.Empty: No sample within the timeout.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self._ready:
            if until is not None and time.monotonic() >= until:
                raise queue.Empty
            self._serve(IDLE)
        return self._ready.popleft()

    def qsize(self) -> int:
        return len(self._ready)

    def start(self) -> None:
        trainer = _Trainer(self)
        trainer.role = self.role
        self._actor = TrainerActor(
            trainer, ActivityLog(self._welcome.epoch_monotonic_ns), self._session.send
        )
        self._actor.start()
        self._ready.extend(self._filler())

    def stop(self) -> None:
        """Called when TRL has finished. Answers the run's last requests, such as a checkpoint, until the run ends."""
        while not self._ended and self._actor is not None:
            self._serve(IDLE)

    def update_model_version(self, model_version: int) -> None:
        self._trl_version = model_version

    def check_health(self, stale_after_s: float) -> None:
        """Does nothing: the session raises an exception when the run ends."""

    # --- TRL's WeightTransferProtocol

    def init_weight_transfer(self) -> None:
        pass

    def pause(self) -> None:
        pass

    def send_weights(self, iterator: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Receives the initial weights at the first call, then those after each trained batch."""
        self._weights = {name: tensor.detach().float().cpu().clone() for name, tensor in iterator}
        if self._work is None:
            if self._actor is not None:
                raise RoleError("TRL synced weights without a batch: weight_sync_steps must be 1")
            return
        if len(self._ready) > self._micro_batch:
            raise RoleError(
                f"TRL completed a step without {len(self._ready)} samples of its batch: pass the arguments of config()"
            )
        work, batch, begin = self._work
        self._work = None
        assert self._actor is not None
        self._actor.finish(work, batch, begin, None, lambda: self._weights)

    def resume(self) -> None:
        pass

    def destroy(self) -> None:
        pass

    # --- Inside

    def _serve(self, timeout: float) -> None:
        """Handles received messages. Raises SystemExit if the run ends before TRL does."""
        assert self._actor is not None
        for message in self._session.take(timeout):
            if isinstance(message, m.Stop):
                self._actor.stop()
                self._ended = True
                if self._ready or self._work is not None or not self._begun_training:
                    raise SystemExit(0)
                return
            if isinstance(message, m.Train):
                begin = self._actor.now()
                batch = self._actor.begin(message)
                self._work = (message, batch, begin)
                self._ready.extend(self._samples(batch))
                self._ready.extend(self._filler())
            else:
                self._actor.on_message(message)
        self._actor.work()

    def _samples(self, batch: Batch) -> list[RolloutSample]:
        given = advantages(batch.rows, self._algorithm, self.role.settings.longest_response)
        return [self._sample(row, value, batch.version) for row, value in zip(batch.rows, given)]

    def _sample(self, row: Row, advantage: float, version: int) -> RolloutSample:
        if row.rewards.any():
            raise RoleError(
                f"a response of group {row.group} has per-token rewards, which TRL does not support"
            )
        none = np.zeros(row.prompt.size)
        oldest = min((s.version for s in row.segments), default=version)
        return RolloutSample(
            prompt=[{"role": "user", "content": self.role.decode(row.prompt, to_end=False)}],
            completion=[{"role": "assistant", "content": self.role.decode(row.response)}],
            input_ids=np.concatenate([row.prompt, row.response]).astype(np.int64),
            completion_mask=np.concatenate([none, row.mask]).astype(np.int64),
            old_log_probs=np.concatenate([none, row.logprobs * row.mask]).astype(np.float32),
            advantage=advantage,
            model_version=self._trl_version - (version - oldest),
            group_id=row.group,
            metrics={"reward": row.reward},
        )

    def _filler(self) -> list[RolloutSample]:
        """A micro-batch without effect."""
        tokens = np.full(2, self.role.vocabulary.end, np.int64)
        sample = RolloutSample(
            prompt=[],
            completion=[],
            input_ids=tokens,
            completion_mask=np.array([0, 1]),
            old_log_probs=np.zeros(2, np.float32),
            advantage=0.0,
            model_version=self._trl_version,
            group_id=-1,
            metrics={},
        )
        return [sample] * self._micro_batch

    def _begin(self, model: Any, optimizer: Any, schedule: Any) -> None:
        """Called at the start of training. Loads weights and optimizer of the checkpoint of a resumed run."""
        self._begun_training = True
        self._begun(optimizer, schedule)
        folder = self.role.resume_from
        if folder is None:
            return
        weights = safetensors.torch.load_file(folder / "model.safetensors")
        parameters = dict(model.named_parameters())
        if set(weights) != set(parameters):
            raise RoleError(
                f"{folder / 'model.safetensors'}: the tensor names differ from those of the model"
            )
        with torch.no_grad():
            for name, tensor in weights.items():
                parameters[name].copy_(tensor)
        state = torch.load(folder / _STATE, map_location="cpu", weights_only=True)
        if self._optimizer is None:
            raise RoleError(f"{folder / _STATE}: TRL's trainer has no optimizer to load it into")
        self._optimizer.load_state_dict(state["optimizer"])
        if self._schedule is not None and state["schedule"] is not None:
            self._schedule.load_state_dict(state["schedule"])

    def _begun(self, optimizer: Any, schedule: Any) -> None:
        self._optimizer = optimizer or self._optimizer
        self._schedule = schedule or self._schedule

    def _save(self, folder: pathlib.Path) -> None:
        safetensors.torch.save_file(self._weights, folder / "model.safetensors", {"format": "pt"})
        state = {
            "optimizer": self._optimizer.state_dict() if self._optimizer is not None else None,
            "schedule": self._schedule.state_dict() if self._schedule is not None else None,
        }
        torch.save(state, folder / _STATE)
