"""Every message between a worker and the orchestrator, and what it is made of.

Made by python/tools/generate_messages.py from `temper protocol --json`: not to be edited. What each
means: docs/reference/protocol.md. `pack()` gives the msgpack map of a struct (field number to value), and
`unpack()` reads one: a missing field has its default, an unknown one is skipped.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Callable, ClassVar

from .wire import (
    Float32Array,
    Int32Array,
    Uint8Array,
    f4,
    i4,
    no_f4,
    no_i4,
    no_u1,
    of_f4,
    of_i4,
    of_u1,
    u1,
)

Fields = dict[int, Any]


#: Version of the whole protocol; both sides have the same.
PROTOCOL = 2


#: Of trainer.json in a trainer's checkpoint.
CHECKPOINT_FORMAT = 2


class AlgorithmName(enum.IntEnum):
    GRPO = 0
    PPO = 1
    DECOUPLED_PPO = 2
    TIS = 3
    GSPO = 4
    CISPO = 5
    DAPO = 6
    RLOO = 7
    REINFORCE_PP = 8
    DR_GRPO = 9
    ICEPOP = 10
    SEQ_MIS = 11
    GEO_RS = 12
    OPD = 13
    PPO_CRITIC = 14
    A3PO = 15


class Decay(enum.IntEnum):
    NONE = 0
    LINEAR = 1
    COSINE = 2


class Objective(enum.IntEnum):
    CLIP = 0
    NAIVE = 1
    DECOUPLED = 2
    TIS = 3
    CISPO = 4
    REINFORCE = 5


class Proximal(enum.IntEnum):
    RECOMPUTED = 0
    INTERPOLATED = 1


class AdvantageMean(enum.IntEnum):
    NONE = 0
    GROUP = 1
    BATCH = 2
    LEAVE_ONE_OUT = 3
    CRITIC = 4


class AdvantageStd(enum.IntEnum):
    NONE = 0
    GROUP = 1
    BATCH = 2


class RatioLevel(enum.IntEnum):
    TOKEN = 0
    SEQUENCE = 1


class Averaging(enum.IntEnum):
    TOKEN = 0
    SEQUENCE = 1
    CONSTANT = 2


class WeightMode(enum.IntEnum):
    CLAMP = 0
    MASK = 1


class WeightLevel(enum.IntEnum):
    TOKEN = 0
    GEOMETRIC = 1
    SEQUENCE = 2


class OnNewWeights(enum.IntEnum):
    KEEP_KV = 0
    RECOMPUTE = 1
    FINISH = 2


class RoleKind(enum.IntEnum):
    ROLLOUT = 0
    REFERENCE = 1
    REWARD = 2
    TRAINER = 3


class PolicyKind(enum.IntEnum):
    TORCH = 0
    SYNTHETIC = 1


class Architecture(enum.IntEnum):
    LLAMAFORCAUSALLM = 0
    QWEN2FORCAUSALLM = 1
    QWEN3FORCAUSALLM = 2


class ComputeType(enum.IntEnum):
    FLOAT32 = 0
    BFLOAT16 = 1


class TaskKind(enum.IntEnum):
    ADDITION = 0
    JSONL = 1


class TokenizerKind(enum.IntEnum):
    AUTO = 0
    BYTES = 1
    CHARACTERS = 2


class TemplateKind(enum.IntEnum):
    NONE = 0
    CHAT = 1


class VerifierKind(enum.IntEnum):
    EXACT = 0
    NUMERIC = 1
    REGEX = 2
    COMMAND = 3
    PYTHON = 4
    JUDGE = 5
    MODEL = 6
    SUM = 7


class SandboxKind(enum.IntEnum):
    NONE = 0
    LIMITS = 1
    NAMESPACES = 2


class EngineKind(enum.IntEnum):
    NATIVE = 0
    PYTHON = 1
    COMMAND = 2
    VLLM = 3
    SGLANG = 4
    OPENAI = 5
    LLAMACPP = 6


class CardState(enum.IntEnum):
    TRAIN = 0
    DECODE = 1
    PREFILL = 2
    REFERENCE = 3
    REWARD = 4
    WEIGHT_SYNC = 5
    SWITCH = 6
    WAIT_DATA = 7
    WAIT_WEIGHTS = 8
    WAIT_QUOTA = 9
    IDLE = 10
    DOWN = 11
    EVALUATE = 12
    WAIT_TOOLS = 13


class FinishReason(enum.IntEnum):
    END = 0
    LENGTH = 1
    INTERRUPTED = 2
    FAILED = 3


class SwitchAction(enum.IntEnum):
    INTERRUPT = 0
    FREE_KV = 1
    FREE_WEIGHTS = 2
    ALLOCATE_KV = 3
    OFFLOAD_OPTIMIZER = 4
    ONLOAD_OPTIMIZER = 5
    OFFLOAD_REFERENCE = 6
    ONLOAD_REFERENCE = 7


@dataclasses.dataclass(slots=True)
class Piece:
    #: Position of the frame in the body, in bytes.
    offset: int = 0
    #: Size of the whole body.
    total: int = 0

    def pack(self) -> Fields:
        return {
            1: self.offset,
            2: self.total,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Piece:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
        )


@dataclasses.dataclass(slots=True)
class Envelope:
    #: Number of the message type.
    tag: int = 0
    #: Version of the message type, from the sender.
    version: int = 1
    #: Position among the sender's messages, from 1.
    sequence: int = 0
    #: If present, the second frame is a piece of the body.
    piece: Piece | None = None

    def pack(self) -> Fields:
        return {
            1: self.tag,
            2: self.version,
            3: self.sequence,
            4: None if self.piece is None else self.piece.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Envelope:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 1),
            get(3, 0),
            None if (x := get(4, None)) is None else Piece.unpack(x),
        )


@dataclasses.dataclass(slots=True)
class LearningRateSchedule:
    #: Number of first steps in which the learning rate rises in equal parts.
    warm_up_steps: int = 0
    #: How it falls after them: not at all, along a line, or along half a cosine.
    decay: Decay = Decay.NONE
    #: Number of steps of the run after which it is `end`. Null: `steps`.
    decay_steps: int | None = None
    #: Learning rate after the decay, as a share of `algorithm.learning_rate`.
    end: float = 0.0

    def pack(self) -> Fields:
        return {
            1: self.warm_up_steps,
            2: int(self.decay),
            3: self.decay_steps,
            4: self.end,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> LearningRateSchedule:
        get = fields.get
        return cls(
            get(1, 0),
            Decay(get(2, 0)),
            get(3, None),
            get(4, 0.0),
        )


@dataclasses.dataclass(slots=True)
class CriticConfig:
    #: Lambda of generalized advantage estimation. 1: return minus value; 0: the temporal
    #: difference of one token.
    gae_lambda: float = 0.95
    #: Discount of the return, per token.
    discount: float = 1.0
    #: Distance from the value before the step beyond which a value has no gradient towards its
    #: return. Null: no limit.
    value_clip: float | None = None
    #: Learning rate of the critic. Null: `algorithm.learning_rate`.
    learning_rate: float | None = None
    #: Number of first steps that train the critic only; the policy does not change.
    warm_up_steps: int = 0
    #: KL in the reward: coefficient of log(sampler / reference) of each token, which is
    #: subtracted from the token's reward. 0: none.
    kl: float = 0.0

    def pack(self) -> Fields:
        return {
            1: self.gae_lambda,
            2: self.discount,
            3: self.value_clip,
            4: self.learning_rate,
            5: self.warm_up_steps,
            6: self.kl,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> CriticConfig:
        get = fields.get
        return cls(
            get(1, 0.95),
            get(2, 1.0),
            get(3, None),
            get(4, None),
            get(5, 0),
            get(6, 0.0),
        )


@dataclasses.dataclass(slots=True)
class AlgorithmConfig:
    #: Algorithm: a row of the table in docs/reference/algorithms.md. Keys of this section that
    #: are null take their value from the row.
    name: AlgorithmName = AlgorithmName.GRPO
    #: Prompts (groups) per step.
    groups_per_update: int = 64
    #: Responses per prompt. At least 2 for a real policy without a critic.
    responses_per_group: int = 16
    #: Minibatches per step. The optimizer (AdamW) is applied once per minibatch. Must divide
    #: the number of responses of a step.
    minibatches: int = 4
    #: Lower clip of the importance ratio: 1 - clip_low. From 0 to 1.
    clip_low: float | None = None
    #: Upper clip of the importance ratio: 1 + clip_high. At least 0.
    clip_high: float | None = None
    #: Coefficient of the KL (k3) to the reference in the loss. 0: no KL term, and no reference
    #: needed.
    kl: float = 0.0
    #: Added to the standard deviation of rewards before dividing by it.
    advantage_epsilon: float = 0.0001
    #: Learning rate of AdamW.
    learning_rate: float = 0.0002
    #: How the learning rates of the policy and the critic change during the run.
    learning_rate_schedule: LearningRateSchedule = dataclasses.field(default_factory=LearningRateSchedule)
    #: AdamW: decay rate of the first moment.
    beta1: float = 0.9
    #: AdamW: decay rate of the second moment.
    beta2: float = 0.95
    #: AdamW: added to the denominator.
    adam_epsilon: float = 1e-08
    #: AdamW: decoupled weight decay.
    weight_decay: float = 0.0
    #: Largest global gradient norm; larger gradients are scaled down to it.
    gradient_clip: float = 1.0
    #: Multiply the learning rate of a step by the square root of its `ratio/effective`, so that
    #: a step whose samples are too stale changes the policy less.
    scale_by_effective_samples: bool = False
    #: Tokens per forward and backward pass, padding included. Lower it to save memory; at least
    #: `model.context`.
    micro_batch_tokens: int = 16384
    #: Per-token loss. `clip`: clipped around the behaviour policy; `naive`: clipped around the
    #: proximal policy, without correction for stale samples; `decoupled`, `tis`, `cispo`,
    #: `reinforce`: see docs/reference/algorithms.md.
    objective: Objective | None = None
    #: naive, decoupled, tis: log-probs under the weights before the step. `recomputed`: by one
    #: more forward pass; `interpolated`: between those of the sampler and of the current
    #: weights, by versions (A-3PO).
    proximal: Proximal | None = None
    #: Baseline that is subtracted from a reward: nothing, the mean of the group or of the
    #: batch, or the mean of the other responses of the group. `critic`: the values of a second
    #: network, for an advantage per token (GAE).
    advantage_mean: AdvantageMean | None = None
    #: Standard deviation of rewards by which advantages are divided: none, of the group or of
    #: the batch. With a critic, `batch` whitens the advantages of all tokens of the batch.
    advantage_std: AdvantageStd | None = None
    #: Level of the importance ratio: per token, or the geometric mean over the response.
    ratio: RatioLevel | None = None
    #: How token losses are averaged. `token`: over all tokens; `sequence`: over each response
    #: first, then over responses; `constant`: sum divided by responses times
    #: `sampling.max_new_tokens`.
    average: Averaging | None = None
    #: decoupled, tis: smallest behaviour weight. From 0 (none) to 1.
    behaviour_weight_floor: float | None = None
    #: decoupled, tis: largest behaviour weight, the ratio of proximal to behaviour probability.
    #: At least 1.
    behaviour_weight_cap: float | None = None
    #: decoupled: treatment of a weight below the floor or above the cap. `clamp`: the nearer of
    #: them is used; `mask`: its tokens are left out of the loss.
    behaviour_weight_mode: WeightMode | None = None
    #: decoupled, tis: `token`: a weight per token; `geometric`: one per response, the geometric
    #: mean of its token ratios; `sequence`: one per response, their product. Null: that of the
    #: row, or `geometric` with `ratio: sequence`.
    behaviour_weight_level: WeightLevel | None = None
    #: On-policy distillation: weight of log(teacher / sampler) of each sampled token, its
    #: negative reverse KL, in the token's advantage. The teacher is the reference
    #: (`reference.model`). 0: none.
    distillation: float | None = None
    #: Weight of the advantage from the reward beside `distillation`. 0: rewards are judged and
    #: reported only.
    reward_weight: float | None = None
    #: Replace a judged group whose rewards are all equal by a new one, because its advantages
    #: are 0 (dynamic sampling).
    filter_equal_rewards: bool | None = None
    #: Limit of filtered groups per step, as a multiple of `groups_per_update`. Beyond it such
    #: groups are trained, so that a run ends even if the policy solves every prompt.
    filter_limit: float = 16.0
    #: Limit of failed groups per step, as a multiple of `groups_per_update`, but at least 16
    #: groups. One more ends the run with the reason of the last failure.
    failure_limit: float = 8.0
    #: Soft length penalty: over the last this many tokens before `sampling.max_new_tokens`, the
    #: reward decreases linearly by up to `overlong_penalty`. 0: no penalty.
    overlong_buffer: int | None = None
    #: Amount subtracted from the reward of a response of full length.
    overlong_penalty: float = 1.0
    #: The critic of `advantage_mean: critic`: a second network of the policy's shape, trained
    #: beside it.
    critic: CriticConfig = dataclasses.field(default_factory=CriticConfig)

    def pack(self) -> Fields:
        return {
            15: int(self.name),
            1: self.groups_per_update,
            2: self.responses_per_group,
            3: self.minibatches,
            4: self.clip_low,
            5: self.clip_high,
            6: self.kl,
            7: self.advantage_epsilon,
            8: self.learning_rate,
            35: self.learning_rate_schedule.pack(),
            9: self.beta1,
            10: self.beta2,
            11: self.adam_epsilon,
            12: self.weight_decay,
            13: self.gradient_clip,
            32: self.scale_by_effective_samples,
            14: self.micro_batch_tokens,
            16: None if self.objective is None else int(self.objective),
            34: None if self.proximal is None else int(self.proximal),
            17: None if self.advantage_mean is None else int(self.advantage_mean),
            18: None if self.advantage_std is None else int(self.advantage_std),
            19: None if self.ratio is None else int(self.ratio),
            20: None if self.average is None else int(self.average),
            28: self.behaviour_weight_floor,
            21: self.behaviour_weight_cap,
            22: None if self.behaviour_weight_mode is None else int(self.behaviour_weight_mode),
            29: None if self.behaviour_weight_level is None else int(self.behaviour_weight_level),
            30: self.distillation,
            31: self.reward_weight,
            23: self.filter_equal_rewards,
            24: self.filter_limit,
            27: self.failure_limit,
            25: self.overlong_buffer,
            26: self.overlong_penalty,
            33: self.critic.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> AlgorithmConfig:
        get = fields.get
        return cls(
            AlgorithmName(get(15, 0)),
            get(1, 64),
            get(2, 16),
            get(3, 4),
            get(4, None),
            get(5, None),
            get(6, 0.0),
            get(7, 0.0001),
            get(8, 0.0002),
            LearningRateSchedule.unpack(get(35, {})),
            get(9, 0.9),
            get(10, 0.95),
            get(11, 1e-08),
            get(12, 0.0),
            get(13, 1.0),
            get(32, False),
            get(14, 16384),
            None if (x := get(16, None)) is None else Objective(x),
            None if (x := get(34, None)) is None else Proximal(x),
            None if (x := get(17, None)) is None else AdvantageMean(x),
            None if (x := get(18, None)) is None else AdvantageStd(x),
            None if (x := get(19, None)) is None else RatioLevel(x),
            None if (x := get(20, None)) is None else Averaging(x),
            get(28, None),
            get(21, None),
            None if (x := get(22, None)) is None else WeightMode(x),
            None if (x := get(29, None)) is None else WeightLevel(x),
            get(30, None),
            get(31, None),
            get(23, None),
            get(24, 16.0),
            get(27, 8.0),
            get(25, None),
            get(26, 1.0),
            CriticConfig.unpack(get(33, {})),
        )


@dataclasses.dataclass(slots=True)
class TrainerSettings:
    #: Advantages, loss and optimizer.
    algorithm: AlgorithmConfig = dataclasses.field(default_factory=AlgorithmConfig)
    #: Sampling temperature; log-probs are computed at it.
    temperature: float = 1.0
    #: Synthetic: time of a training step.
    synthetic_step: int = 0
    #: Synthetic: size of the weights of a version.
    synthetic_weights: int = 0
    #: Largest response length, in tokens (`sampling.max_new_tokens`).
    longest_response: int = 1

    def pack(self) -> Fields:
        return {
            1: self.algorithm.pack(),
            2: self.temperature,
            3: self.synthetic_step,
            5: self.synthetic_weights,
            4: self.longest_response,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> TrainerSettings:
        get = fields.get
        return cls(
            AlgorithmConfig.unpack(get(1, {})),
            get(2, 1.0),
            get(3, 0),
            get(5, 0),
            get(4, 1),
        )


@dataclasses.dataclass(slots=True)
class SamplingConfig:
    #: Divides the logits. Recorded log-probs are those of the resulting distribution.
    temperature: float = 1.0
    #: Nucleus sampling: sample from the smallest set of tokens with this total probability.
    top_p: float = 1.0
    #: Largest response length, in tokens.
    max_new_tokens: int = 8

    def pack(self) -> Fields:
        return {
            1: self.temperature,
            2: self.top_p,
            3: self.max_new_tokens,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> SamplingConfig:
        get = fields.get
        return cls(
            get(1, 1.0),
            get(2, 1.0),
            get(3, 8),
        )


@dataclasses.dataclass(slots=True)
class AgentConfig:
    #: Program and arguments, started for each engine (docs/how-to/agents.md). Empty: no agent;
    #: every response has one turn.
    command: list[str] = dataclasses.field(default_factory=list)
    #: Agent processes per engine. Each plays many episodes at once.
    processes: int = 1
    #: Largest number of requests per episode.
    turns: int = 16
    #: Time limit of one episode. An episode that exceeds it fails.
    deadline: int = 120000000000
    #: Environment variables to pass to the program, in addition to those that every program
    #: receives (`verifier.environment`).
    environment: list[str] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.command,
            2: self.processes,
            3: self.turns,
            4: self.deadline,
            5: self.environment,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> AgentConfig:
        get = fields.get
        return cls(
            get(1, []),
            get(2, 1),
            get(3, 16),
            get(4, 120000000000),
            get(5, []),
        )


@dataclasses.dataclass(slots=True)
class RolloutSettings:
    #: How responses are sampled.
    sampling: SamplingConfig = dataclasses.field(default_factory=SamplingConfig)
    #: Largest number of responses in flight.
    concurrency: int = 128
    #: Synthetic: length of every response.
    synthetic_tokens: int = 256
    #: Synthetic: time of a decode step.
    synthetic_step: int = 0
    #: What happens to running responses when the weights change.
    on_new_weights: OnNewWeights = OnNewWeights.KEEP_KV
    #: Whether the most urgent request enters the batch first.
    deadline_first: bool = False
    #: Program that plays multi-turn episodes.
    agent: AgentConfig = dataclasses.field(default_factory=AgentConfig)

    def pack(self) -> Fields:
        return {
            1: self.sampling.pack(),
            2: self.concurrency,
            3: self.synthetic_tokens,
            4: self.synthetic_step,
            10: int(self.on_new_weights),
            11: self.deadline_first,
            12: self.agent.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> RolloutSettings:
        get = fields.get
        return cls(
            SamplingConfig.unpack(get(1, {})),
            get(2, 128),
            get(3, 256),
            get(4, 0),
            OnNewWeights(get(10, 0)),
            get(11, False),
            AgentConfig.unpack(get(12, {})),
        )


@dataclasses.dataclass(slots=True)
class RelayAddress:
    #: Where it listens; empty: it does not relay.
    endpoint: str = ""
    #: Its CURVE public key, which it also uses when it fetches from others, in ZeroMQ's text
    #: form.
    key: str = ""

    def pack(self) -> Fields:
        return {
            1: self.endpoint,
            2: self.key,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> RelayAddress:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, ""),
        )


@dataclasses.dataclass(slots=True)
class Hello:
    """`actor.hello`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.hello"
    TAG: ClassVar[int] = 1
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Protocol version; must equal the orchestrator's.
    protocol: int = 2
    #: Actor slot, e.g. `rollout-0`. Attached: also a role (`rollout`: any free slot of it),
    #: `any` (any free slot), or `#` and a rank (the attached slot with this number, from 0, or
    #: any free one).
    name: str = ""
    #: Launch secret of the run.
    secret: str = ""
    #: Process id on its host.
    pid: int = 0
    #: Host name.
    host: str = ""
    #: True if the orchestrator did not start this worker.
    attached: bool = False
    #: Attached: its previous slot, which it gets again if it is free.
    was: str = ""
    #: Attached: the run of its key.
    run: str = ""
    #: Attached: incarnation of the orchestrator that it last served; 0: none.
    incarnation: int = 0
    #: Attached: where other workers can fetch weights from it.
    relay: RelayAddress = dataclasses.field(default_factory=RelayAddress)

    def pack(self) -> Fields:
        return {
            1: self.protocol,
            2: self.name,
            3: self.secret,
            4: self.pid,
            5: self.host,
            6: self.attached,
            7: self.was,
            8: self.run,
            9: self.incarnation,
            10: self.relay.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Hello:
        get = fields.get
        return cls(
            get(1, 2),
            get(2, ""),
            get(3, ""),
            get(4, 0),
            get(5, ""),
            get(6, False),
            get(7, ""),
            get(8, ""),
            get(9, 0),
            RelayAddress.unpack(get(10, {})),
        )


@dataclasses.dataclass(slots=True)
class RopeScaling:
    #: Slow rotary angles are slowed down by this factor.
    factor: float = 8.0
    #: An angle is slow if it turns at most this often within `original_context`.
    low_freq_factor: float = 1.0
    #: An angle that turns at least this often is unchanged; must exceed `low_freq_factor`.
    #: Angles in between are interpolated.
    high_freq_factor: float = 4.0
    #: original_max_position_embeddings, in tokens.
    original_context: int = 8192

    def pack(self) -> Fields:
        return {
            1: self.factor,
            2: self.low_freq_factor,
            3: self.high_freq_factor,
            4: self.original_context,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> RopeScaling:
        get = fields.get
        return cls(
            get(1, 8.0),
            get(2, 1.0),
            get(3, 4.0),
            get(4, 8192),
        )


@dataclasses.dataclass(slots=True)
class LoraConfig:
    #: Rows of A and columns of B; at most the smaller side of every target.
    rank: int = 16
    #: The adapter's output is scaled by alpha / rank.
    alpha: float = 32.0
    #: Linear layers with an adapter, in every block: `q_proj`, `k_proj`, `v_proj`, `o_proj`,
    #: `gate_proj`, `up_proj` and `down_proj`.
    targets: list[str] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.rank,
            2: self.alpha,
            3: self.targets,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> LoraConfig:
        get = fields.get
        return cls(
            get(1, 16),
            get(2, 32.0),
            get(3, []),
        )


@dataclasses.dataclass(slots=True)
class ModelConfig:
    #: Width of the residual stream.
    hidden: int = 64
    #: Number of transformer blocks.
    layers: int = 2
    #: Query heads.
    heads: int = 4
    #: Key and value heads; must divide `heads`.
    kv_heads: int = 2
    #: Inner width of the SwiGLU layer.
    ffn: int = 192
    #: Longest prompt plus response, in tokens. With `path`: at most, and by default, the
    #: folder's max_position_embeddings.
    context: int = 32
    #: Base of the rotary angles.
    rope_base: float = 10000.0
    #: Architecture, named as in config.json.
    architecture: Architecture = Architecture.LLAMAFORCAUSALLM
    #: Width of a head, an even number; default: hidden / heads.
    head_dim: int | None = None
    #: Added to the mean square of a norm.
    norm_epsilon: float = 1e-06
    #: Whether the output head shares the weights of the embedding.
    tie_embeddings: bool = False
    #: Rows of the embedding; default: number of tokens of the task's tokenizer.
    vocabulary: int | None = None
    #: Folder of a Hugging Face model, a GGUF file (or a folder with one), or `smollm2`:
    #: SmolLM2-135M-Instruct, which is downloaded once. The run starts from its weights without
    #: pretraining, and all other keys of this section except `context`, `ignore`,
    #: `compute_dtype` and `lora` are read from its config.json. Empty: the base model is
    #: pretrained.
    path: str = ""
    #: End-of-response tokens. Empty: with `path`, the eos_token_id of its
    #: generation_config.json or config.json; otherwise that of the task's tokenizer.
    end_tokens: Int32Array = dataclasses.field(default_factory=no_i4)
    #: The `llama3` scaling of rotary angles; null: none.
    rope_scaling: RopeScaling | None = None
    #: With `path`: unknown keys of its config.json that do not change what the network
    #: computes. The run prints a warning for each ignored key.
    ignore: list[str] = dataclasses.field(default_factory=list)
    #: Operands of matrix products in Temper's own engines, and matrices of the weights that are
    #: published. The trainer keeps weights, gradients and optimizer in float32. `bfloat16` is
    #: faster on CPUs with AVX512-BF16 or AMX.
    compute_dtype: ComputeType = ComputeType.FLOAT32
    #: Train and publish low-rank adapters only; the weights of the base stay as they are. null:
    #: train all weights (docs/how-to/lora.md).
    lora: LoraConfig | None = None

    def pack(self) -> Fields:
        return {
            1: self.hidden,
            2: self.layers,
            3: self.heads,
            4: self.kv_heads,
            5: self.ffn,
            6: self.context,
            7: self.rope_base,
            8: int(self.architecture),
            9: self.head_dim,
            10: self.norm_epsilon,
            11: self.tie_embeddings,
            12: self.vocabulary,
            13: self.path,
            14: of_i4(self.end_tokens),
            15: None if self.rope_scaling is None else self.rope_scaling.pack(),
            16: self.ignore,
            17: int(self.compute_dtype),
            18: None if self.lora is None else self.lora.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> ModelConfig:
        get = fields.get
        return cls(
            get(1, 64),
            get(2, 2),
            get(3, 4),
            get(4, 2),
            get(5, 192),
            get(6, 32),
            get(7, 10000.0),
            Architecture(get(8, 0)),
            get(9, None),
            get(10, 1e-06),
            get(11, False),
            get(12, None),
            get(13, ""),
            i4(get(14, b"")),
            None if (x := get(15, None)) is None else RopeScaling.unpack(x),
            get(16, []),
            ComputeType(get(17, 0)),
            None if (x := get(18, None)) is None else LoraConfig.unpack(x),
        )


@dataclasses.dataclass(slots=True)
class TaskSource:
    #: jsonl: path of the file, in the format of `task.path`.
    path: str = ""
    #: addition: digits of each summand, from 1 to 9. Null: `task.digits`.
    digits: int | None = None
    #: Groups of this source in proportion to those of the others.
    weight: float = 1.0
    #: Weights by step in place of `weight`: linear between two steps, constant before the first
    #: and after the last.
    schedule: dict[int, float] = dataclasses.field(default_factory=dict)

    def pack(self) -> Fields:
        return {
            1: self.path,
            2: self.digits,
            3: self.weight,
            4: self.schedule,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> TaskSource:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, None),
            get(3, 1.0),
            get(4, {}),
        )


@dataclasses.dataclass(slots=True)
class SetAside:
    #: Set a problem aside if at least this share of the responses of its last group passed
    #: (`evaluation.pass`). From 0 to 1. Null: never.
    easy: float | None = None
    #: Set a problem aside if at most this share of the responses of its last group passed. From
    #: 0 to 1. Null: never.
    hopeless: float | None = None
    #: Epochs of its source for which a problem is left out; then it is tried again.
    for_epochs: int = 1

    def pack(self) -> Fields:
        return {
            1: self.easy,
            2: self.hopeless,
            3: self.for_epochs,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> SetAside:
        get = fields.get
        return cls(
            get(1, None),
            get(2, None),
            get(3, 1),
        )


@dataclasses.dataclass(slots=True)
class TaskConfig:
    #: `addition` (built in) or `jsonl` (a file of prompts).
    kind: TaskKind = TaskKind.ADDITION
    #: addition: digits of each summand.
    digits: int = 3
    #: addition: write the answer least significant digit first, which a small model learns much
    #: faster.
    reverse_answer: bool = True
    #: Share of the problems kept out of training, for `evaluation`.
    held_out: float = 0.1
    #: jsonl: path of the file; each line has `prompt` and `answer`, or `question` and `answer`.
    path: str = ""
    #: `auto` means `characters` for addition and `bytes` for jsonl.
    tokenizer: TokenizerKind = TokenizerKind.AUTO
    #: jsonl: `none`: prompts are texts that the engine gets unchanged. `chat`: prompts are
    #: texts or messages, rendered with the chat template of `model.path` (needs Python with
    #: jinja2).
    template: TemplateKind = TemplateKind.NONE
    #: Several sources of problems by name, each with a weight. The column `source` of a problem
    #: has the name. Empty: one source, by the keys above.
    sources: dict[str, TaskSource] = dataclasses.field(default_factory=dict)
    #: Visit the problems of a source in another order in every epoch. False: in the order of
    #: the file.
    shuffle: bool = True
    #: Problems that are left out for some epochs.
    set_aside: SetAside = dataclasses.field(default_factory=SetAside)

    def pack(self) -> Fields:
        return {
            1: int(self.kind),
            2: self.digits,
            3: self.reverse_answer,
            4: self.held_out,
            5: self.path,
            6: int(self.tokenizer),
            7: int(self.template),
            8: {k: x.pack() for k, x in self.sources.items()},
            9: self.shuffle,
            10: self.set_aside.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> TaskConfig:
        get = fields.get
        return cls(
            TaskKind(get(1, 0)),
            get(2, 3),
            get(3, True),
            get(4, 0.1),
            get(5, ""),
            TokenizerKind(get(6, 0)),
            TemplateKind(get(7, 0)),
            {k: TaskSource.unpack(x) for k, x in get(8, {}).items()},
            get(9, True),
            SetAside.unpack(get(10, {})),
        )


@dataclasses.dataclass(slots=True)
class JudgeConfig:
    #: Base address of the API, as OpenAI clients take it; requests go to
    #: `URL/chat/completions`.
    url: str = ""
    #: Model name in requests.
    model: str = ""
    #: Name of the environment variable with the API key; empty: none is sent. The key is
    #: written nowhere.
    key_variable: str = ""
    #: The question. `{prompt}`, `{response}`, `{answer}` and the name of any column of the row
    #: in braces are replaced by their text; other braces stay.
    prompt: str = ""
    #: The system message; empty: none.
    system: str = ""
    #: Regular expression of Python; its first group, or the whole of its last match in the
    #: reply, is the score. Either this or `field`.
    pattern: str = ""
    #: Key of the score in the last JSON object of the reply.
    field: str = ""
    #: Score that becomes reward 0.
    lowest: float = 0.0
    #: Score that becomes reward 1; a reply with a score outside the range is invalid.
    highest: float = 1.0
    #: Sampling temperature. Null: the request has none, and the server uses its own.
    temperature: float | None = 0.0
    #: Longest reply, in tokens. Null: the request has no such limit.
    max_tokens: int | None = 1024
    #: Requests for one response within `deadline`, if the first ones fail: no connection,
    #: status 408, 429 or 5xx, or a reply without a valid score.
    attempts: int = 4
    #: Number of scores that are kept, so that equal questions are asked once.
    cache: int = 100000
    #: Price of a million input tokens, for `judge/cost`.
    input_price: float = 0.0
    #: Price of a million output tokens.
    output_price: float = 0.0
    #: JSON object with further fields of a request, as `extra_body` of OpenAI's client.
    extra_body: str = ""

    def pack(self) -> Fields:
        return {
            1: self.url,
            2: self.model,
            3: self.key_variable,
            4: self.prompt,
            5: self.system,
            6: self.pattern,
            7: self.field,
            8: self.lowest,
            9: self.highest,
            10: self.temperature,
            11: self.max_tokens,
            12: self.attempts,
            13: self.cache,
            14: self.input_price,
            15: self.output_price,
            16: self.extra_body,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> JudgeConfig:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, ""),
            get(3, ""),
            get(4, ""),
            get(5, ""),
            get(6, ""),
            get(7, ""),
            get(8, 0.0),
            get(9, 1.0),
            get(10, 0.0),
            get(11, 1024),
            get(12, 4),
            get(13, 100000),
            get(14, 0.0),
            get(15, 0.0),
            get(16, ""),
        )


@dataclasses.dataclass(slots=True)
class ClassifierConfig:
    #: Folder of a model that AutoModelForSequenceClassification loads.
    path: str = ""
    #: Class whose probability is the reward. Empty: the model has one output, which is the
    #: reward.
    label: str = ""
    #: Input of the classifier; names in braces as in `judge.prompt`.
    text: str = "{prompt}{response}"
    #: `none`: the input is `text`. `chat`: it is the conversation, the row's `messages` or the
    #: prompt and then the response, rendered by the chat template of the folder.
    template: TemplateKind = TemplateKind.NONE
    #: `cpu`, `cuda` or `cuda:1`; empty: a GPU if there is one.
    device: str = ""
    #: Responses of one forward pass.
    batch: int = 32

    def pack(self) -> Fields:
        return {
            1: self.path,
            2: self.label,
            3: self.text,
            4: int(self.template),
            5: self.device,
            6: self.batch,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> ClassifierConfig:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, ""),
            get(3, "{prompt}{response}"),
            TemplateKind(get(4, 0)),
            get(5, ""),
            get(6, 32),
        )


@dataclasses.dataclass(slots=True)
class VerifierTerm:
    #: How responses are judged. `exact`: the response equals the answer; `numeric`: its last
    #: number equals that of the answer; `regex`: it matches a pattern; `command`: your program
    #: says so; `python`: your function in Python says so; `judge`: a language model behind an
    #: OpenAI-compatible address gives a score; `model`: a sequence classifier of transformers
    #: gives the reward; `sum`: the weighted sum of `terms`.
    kind: VerifierKind = VerifierKind.EXACT
    #: numeric: largest accepted difference from the answer.
    tolerance: float = 1e-06
    #: regex: ECMAScript pattern that must match in the response; `{answer}` is replaced by the
    #: escaped answer.
    pattern: str = ""
    #: command: executable and arguments; reads and writes one JSON line per response.
    command: list[str] = dataclasses.field(default_factory=list)
    #: command, python: number of processes. judge: requests at the same time.
    pool: int = 2
    #: command: time limit for one response; after it the process is replaced and the response
    #: counts as failed. python: the same for one call with its responses. judge: time limit for
    #: one response with all attempts.
    deadline: int = 5000000000
    #: command: restrictions on the program. `none`: no restrictions. `limits`: bounded memory,
    #: files and descriptors, no new privileges. `namespaces`: `limits`, and no network, no
    #: other processes visible, read-only file systems, an empty private /tmp.
    sandbox: SandboxKind = SandboxKind.LIMITS
    #: command: memory limit of the program and everything it starts, unless `sandbox: none`.
    memory: int = 8589934592
    #: command: environment variables passed to the program in addition to PATH, HOME, USER,
    #: LANG, LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS.
    environment: list[str] = dataclasses.field(default_factory=list)
    #: command, `sandbox: namespaces`: folders that appear empty to the program.
    hidden: list[str] = dataclasses.field(default_factory=list)
    #: python: module and function, called like a reward function of TRL: f(prompts,
    #: completions, completion_ids, **columns) returns a list of numbers.
    function: str = ""
    #: judge: the language model and its question.
    judge: JudgeConfig = dataclasses.field(default_factory=JudgeConfig)
    #: model: the classifier.
    model: ClassifierConfig = dataclasses.field(default_factory=ClassifierConfig)
    #: Factor of its reward in the sum; 0: the reward is shown, but not counted.
    weight: float = 1.0

    def pack(self) -> Fields:
        return {
            1: int(self.kind),
            2: self.tolerance,
            3: self.pattern,
            4: self.command,
            5: self.pool,
            6: self.deadline,
            7: int(self.sandbox),
            8: self.memory,
            9: self.environment,
            10: self.hidden,
            11: self.function,
            13: self.judge.pack(),
            14: self.model.pack(),
            15: self.weight,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> VerifierTerm:
        get = fields.get
        return cls(
            VerifierKind(get(1, 0)),
            get(2, 1e-06),
            get(3, ""),
            get(4, []),
            get(5, 2),
            get(6, 5000000000),
            SandboxKind(get(7, 1)),
            get(8, 8589934592),
            get(9, []),
            get(10, []),
            get(11, ""),
            JudgeConfig.unpack(get(13, {})),
            ClassifierConfig.unpack(get(14, {})),
            get(15, 1.0),
        )


@dataclasses.dataclass(slots=True)
class VerifierConfig:
    #: How responses are judged. `exact`: the response equals the answer; `numeric`: its last
    #: number equals that of the answer; `regex`: it matches a pattern; `command`: your program
    #: says so; `python`: your function in Python says so; `judge`: a language model behind an
    #: OpenAI-compatible address gives a score; `model`: a sequence classifier of transformers
    #: gives the reward; `sum`: the weighted sum of `terms`.
    kind: VerifierKind = VerifierKind.EXACT
    #: numeric: largest accepted difference from the answer.
    tolerance: float = 1e-06
    #: regex: ECMAScript pattern that must match in the response; `{answer}` is replaced by the
    #: escaped answer.
    pattern: str = ""
    #: command: executable and arguments; reads and writes one JSON line per response.
    command: list[str] = dataclasses.field(default_factory=list)
    #: command, python: number of processes. judge: requests at the same time.
    pool: int = 2
    #: command: time limit for one response; after it the process is replaced and the response
    #: counts as failed. python: the same for one call with its responses. judge: time limit for
    #: one response with all attempts.
    deadline: int = 5000000000
    #: command: restrictions on the program. `none`: no restrictions. `limits`: bounded memory,
    #: files and descriptors, no new privileges. `namespaces`: `limits`, and no network, no
    #: other processes visible, read-only file systems, an empty private /tmp.
    sandbox: SandboxKind = SandboxKind.LIMITS
    #: command: memory limit of the program and everything it starts, unless `sandbox: none`.
    memory: int = 8589934592
    #: command: environment variables passed to the program in addition to PATH, HOME, USER,
    #: LANG, LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS.
    environment: list[str] = dataclasses.field(default_factory=list)
    #: command, `sandbox: namespaces`: folders that appear empty to the program.
    hidden: list[str] = dataclasses.field(default_factory=list)
    #: python: module and function, called like a reward function of TRL: f(prompts,
    #: completions, completion_ids, **columns) returns a list of numbers.
    function: str = ""
    #: judge: the language model and its question.
    judge: JudgeConfig = dataclasses.field(default_factory=JudgeConfig)
    #: model: the classifier.
    model: ClassifierConfig = dataclasses.field(default_factory=ClassifierConfig)
    #: python: several functions, each with the weight of its reward in the sum; short for
    #: `kind: sum`.
    functions: dict[str, float] = dataclasses.field(default_factory=dict)
    #: sum: the verifiers by name, each with the keys of this section except `functions` and
    #: `terms`, and `weight`.
    terms: dict[str, VerifierTerm] = dataclasses.field(default_factory=dict)

    def pack(self) -> Fields:
        return {
            1: int(self.kind),
            2: self.tolerance,
            3: self.pattern,
            4: self.command,
            5: self.pool,
            6: self.deadline,
            7: int(self.sandbox),
            8: self.memory,
            9: self.environment,
            10: self.hidden,
            11: self.function,
            13: self.judge.pack(),
            14: self.model.pack(),
            12: self.functions,
            16: {k: x.pack() for k, x in self.terms.items()},
        }

    @classmethod
    def unpack(cls, fields: Fields) -> VerifierConfig:
        get = fields.get
        return cls(
            VerifierKind(get(1, 0)),
            get(2, 1e-06),
            get(3, ""),
            get(4, []),
            get(5, 2),
            get(6, 5000000000),
            SandboxKind(get(7, 1)),
            get(8, 8589934592),
            get(9, []),
            get(10, []),
            get(11, ""),
            JudgeConfig.unpack(get(13, {})),
            ClassifierConfig.unpack(get(14, {})),
            get(12, {}),
            {k: VerifierTerm.unpack(x) for k, x in get(16, {}).items()},
        )


@dataclasses.dataclass(slots=True)
class EngineConfig:
    #: `native`: the built-in engine; `python`: a Python class of yours; `command`: a program
    #: that speaks the protocol (docs/how-to/write-a-role.md); `vllm`, `sglang`, `openai`,
    #: `llamacpp`: servers (docs/how-to/servers.md).
    kind: EngineKind = EngineKind.NATIVE
    #: python: module and class.
    use: str = ""
    #: python: keyword arguments of the class; values that parse as JSON (a number, `true`, a
    #: list) are passed as such, others as text.
    with_: dict[str, str] = dataclasses.field(default_factory=dict)
    #: python: interpreter that has the package `temper`; empty: the environment variable
    #: TEMPER_PYTHON, otherwise `python3`.
    python: str = ""
    #: command: program and arguments. Its environment has TEMPER_ENDPOINT, TEMPER_NAME and
    #: TEMPER_CREDENTIALS.
    command: list[str] = dataclasses.field(default_factory=list)
    #: Servers: addresses for requests, one entry per replica, in order: `http://HOST:PORT`. A
    #: single entry can stand for all replicas: `file:PATH`, a file with one address per line
    #: that may appear later, or `dns://NAME:PORT`, a name that resolves to one address per
    #: server.
    data: list[str] = dataclasses.field(default_factory=list)
    #: Servers: addresses for control requests (weights, pauses, versions), as in `data`; empty:
    #: the same addresses. Required if `data` names a router.
    control: list[str] = dataclasses.field(default_factory=list)
    #: Servers: shell command that starts a server. Temper supervises and restarts it.
    #: `{model}`, `{host}` and `{port}` are replaced by the weights folder and the address.
    #: Empty: the servers already run.
    start: str = ""
    #: Servers: model name in requests; empty: the first model that the server lists.
    served_model: str = ""
    #: Servers: folder into which weights are written and which the servers can read; empty: a
    #: folder in TMPDIR of this machine.
    folder: str = ""
    #: Servers: how long a server may be unavailable before its actor fails.
    patience: int = 600000000000
    #: Servers: largest mean difference between the log-probs that the trainer and the server
    #: compute for the canary, a fixed sequence that is compared for each version. Use 1e-4 for
    #: float32 and 2e-2 for bfloat16.
    tolerance: float = 0.0001
    #: `openai`: request that makes a server load new weights: `METHOD /PATH` and, after a
    #: space, the body; `{model}` and `{label}` are replaced by the folder and its name. Empty:
    #: the server is restarted for each version.
    reload: str = ""

    def pack(self) -> Fields:
        return {
            1: int(self.kind),
            2: self.use,
            3: self.with_,
            4: self.python,
            5: self.command,
            6: self.data,
            7: self.control,
            8: self.start,
            9: self.served_model,
            10: self.folder,
            11: self.patience,
            12: self.tolerance,
            13: self.reload,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> EngineConfig:
        get = fields.get
        return cls(
            EngineKind(get(1, 0)),
            get(2, ""),
            get(3, {}),
            get(4, ""),
            get(5, []),
            get(6, []),
            get(7, []),
            get(8, ""),
            get(9, ""),
            get(10, ""),
            get(11, 600000000000),
            get(12, 0.0001),
            get(13, ""),
        )


@dataclasses.dataclass(slots=True)
class Vocabulary:
    #: Token ids are 0 to size - 1.
    size: int = 0
    #: Padding token.
    pad: int = 0
    #: Token that ends a response; it is the response's last token.
    end: int = 1
    #: Token of the first character.
    first: int = 2
    #: The characters, one token each, starting at `first`; empty: the 256 byte values.
    alphabet: str = ""
    #: All tokens that end a response, `end` first.
    ends: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Model folder whose tokenizer defines the token ids, instead of `first` and `alphabet`;
    #: empty: these define them.
    folder: str = ""

    def pack(self) -> Fields:
        return {
            1: self.size,
            2: self.pad,
            3: self.end,
            4: self.first,
            5: self.alphabet,
            6: of_i4(self.ends),
            7: self.folder,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Vocabulary:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 1),
            get(4, 2),
            get(5, ""),
            i4(get(6, b"")),
            get(7, ""),
        )


@dataclasses.dataclass(slots=True)
class TensorPlace:
    #: Folder in shared memory, for files. Without it and without `host`, responses may have no
    #: tensors.
    folder: str = ""
    #: Host of a Redis server; empty: none.
    host: str = ""
    #: Port of the server.
    port: int = 0
    #: Password of the server; empty: none.
    password: str = ""
    #: Beginning of all keys of the run.
    prefix: str = ""
    #: An engine writes a key with this time to live; the orchestrator extends it until the
    #: response was trained.
    lease: int = 0
    #: How long an engine waits for space, and an engine or a trainer for a server that does not
    #: answer.
    wait: int = 0
    #: The server is reached through TLS. A worker verifies its certificate and that the
    #: certificate is for `host`.
    tls: bool = False
    #: CA certificates in PEM that the worker trusts besides those of its system.
    ca_certificates: str = ""

    def pack(self) -> Fields:
        return {
            1: self.folder,
            2: self.host,
            3: self.port,
            4: self.password,
            5: self.prefix,
            6: self.lease,
            7: self.wait,
            8: self.tls,
            9: self.ca_certificates,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> TensorPlace:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, ""),
            get(3, 0),
            get(4, ""),
            get(5, ""),
            get(6, 0),
            get(7, 0),
            get(8, False),
            get(9, ""),
        )


@dataclasses.dataclass(slots=True)
class RoleConfig:
    #: Role.
    kind: RoleKind = RoleKind.ROLLOUT
    #: Engine family.
    policy: PolicyKind = PolicyKind.TORCH
    #: Cards (cores) to pin to.
    cards: list[int] = dataclasses.field(default_factory=list)
    #: Seed of the run.
    seed: int = 0
    #: Shape of the policy.
    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    #: Task.
    task: TaskConfig = dataclasses.field(default_factory=TaskConfig)
    #: Verifier.
    verifier: VerifierConfig = dataclasses.field(default_factory=VerifierConfig)
    #: Hugging Face folder of the base model: config.json and weights.
    base_weights: str = ""
    #: Checkpoint folder, or empty.
    resume_from: str = ""
    #: True: weights travel through shared memory.
    shared_memory: bool = True
    #: Version of the initial weights.
    version: int = 0
    #: Reference: time-shares its cards, so it starts on the host.
    takes_turns: bool = False
    #: msgpack map of the role's own settings: RolloutSettings for rollout, TrainerSettings for
    #: trainer and reference.
    settings: bytes = b""
    #: msgpack of the simulation settings; empty on real hardware.
    simulation: bytes = b""
    #: Engine that does the work.
    engine: EngineConfig = dataclasses.field(default_factory=EngineConfig)
    #: Meaning of the token ids.
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)
    #: Rollout and trainer: where tensors of responses are.
    tensors: TensorPlace = dataclasses.field(default_factory=TensorPlace)

    def pack(self) -> Fields:
        return {
            1: int(self.kind),
            2: int(self.policy),
            3: self.cards,
            4: self.seed,
            5: self.model.pack(),
            6: self.task.pack(),
            7: self.verifier.pack(),
            8: self.base_weights,
            9: self.resume_from,
            10: self.shared_memory,
            12: self.version,
            14: self.takes_turns,
            15: self.settings,
            16: self.simulation,
            17: self.engine.pack(),
            18: self.vocabulary.pack(),
            20: self.tensors.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> RoleConfig:
        get = fields.get
        return cls(
            RoleKind(get(1, 0)),
            PolicyKind(get(2, 0)),
            get(3, []),
            get(4, 0),
            ModelConfig.unpack(get(5, {})),
            TaskConfig.unpack(get(6, {})),
            VerifierConfig.unpack(get(7, {})),
            get(8, ""),
            get(9, ""),
            get(10, True),
            get(12, 0),
            get(14, False),
            get(15, b""),
            get(16, b""),
            EngineConfig.unpack(get(17, {})),
            Vocabulary.unpack(get(18, {})),
            TensorPlace.unpack(get(20, {})),
        )


@dataclasses.dataclass(slots=True)
class Welcome:
    """`actor.welcome`, orchestrator to worker."""

    NAME: ClassVar[str] = "actor.welcome"
    TAG: ClassVar[int] = 2
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Its id in this run.
    actor: int = 0
    #: Role, cards and engine settings.
    role: RoleConfig = dataclasses.field(default_factory=RoleConfig)
    #: Time zero of the run (CLOCK_MONOTONIC).
    epoch_monotonic_ns: int = 0
    #: Interval at which both sides send heartbeats.
    heartbeat: int = 0
    #: Silence after which a side considers the other lost.
    heartbeat_timeout: int = 0
    #: Its slot.
    name: str = ""
    #: Attached: the run.
    run: str = ""
    #: Attached: number of this orchestrator of the run; the highest number is the current one.
    incarnation: int = 0
    #: Attached: the run's clock when this was sent. The worker uses it as its own clock instead
    #: of `epoch_monotonic_ns`, which is valid on another host only.
    now: int = 0
    #: Attached: how long it keeps its loaded state and looks for a new orchestrator once this
    #: orchestrator is silent.
    grace: int = 0
    #: Attached: how long a worker that was asked for weights may be silent before the next one
    #: is asked.
    relay_timeout: int = 0

    def pack(self) -> Fields:
        return {
            1: self.actor,
            2: self.role.pack(),
            3: self.epoch_monotonic_ns,
            4: self.heartbeat,
            5: self.heartbeat_timeout,
            6: self.name,
            7: self.run,
            8: self.incarnation,
            9: self.now,
            10: self.grace,
            11: self.relay_timeout,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Welcome:
        get = fields.get
        return cls(
            get(1, 0),
            RoleConfig.unpack(get(2, {})),
            get(3, 0),
            get(4, 0),
            get(5, 0),
            get(6, ""),
            get(7, ""),
            get(8, 0),
            get(9, 0),
            get(10, 0),
            get(11, 0),
        )


@dataclasses.dataclass(slots=True)
class Reject:
    """`actor.reject`, orchestrator to worker."""

    NAME: ClassVar[str] = "actor.reject"
    TAG: ClassVar[int] = 3
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Why, and what to do.
    reason: str = ""
    #: Attached: there is no free place now. The worker loses its place if it had one, and may
    #: send actor.hello again every second.
    again: bool = False

    def pack(self) -> Fields:
        return {
            1: self.reason,
            2: self.again,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Reject:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, False),
        )


@dataclasses.dataclass(slots=True)
class Ready:
    """`actor.ready`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.ready"
    TAG: ClassVar[int] = 4
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1


    def pack(self) -> Fields:
        return {}

    @classmethod
    def unpack(cls, fields: Fields) -> Ready:
        return cls()


@dataclasses.dataclass(slots=True)
class HeartbeatAnswer:
    #: The `sent` of that heartbeat.
    sent: int = 0
    #: Time between its arrival and this heartbeat.
    held: int = 0

    def pack(self) -> Fields:
        return {
            1: self.sent,
            2: self.held,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> HeartbeatAnswer:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
        )


@dataclasses.dataclass(slots=True)
class Heartbeat:
    """`actor.heartbeat`, both ways."""

    NAME: ClassVar[str] = "actor.heartbeat"
    TAG: ClassVar[int] = 5
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Resident memory of the process.
    resident: int = 0
    #: When it was sent. From a worker: on its copy of the run's clock; from the orchestrator:
    #: on a clock of its own.
    sent: int = 0
    #: From a worker: the heartbeat that it received last. The orchestrator uses it to compute
    #: the offset of the worker's clock.
    answers: HeartbeatAnswer | None = None
    #: From a worker that is not ready yet: since its last heartbeat it has used processor time,
    #: read from a disk, or waited for something under a deadline of its own. This restarts
    #: `deadlines.start`.
    loading: bool = False

    def pack(self) -> Fields:
        return {
            1: self.resident,
            2: self.sent,
            3: None if self.answers is None else self.answers.pack(),
            4: self.loading,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Heartbeat:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            None if (x := get(3, None)) is None else HeartbeatAnswer.unpack(x),
            get(4, False),
        )


@dataclasses.dataclass(slots=True)
class Taken:
    """`actor.taken`, both ways."""

    NAME: ClassVar[str] = "actor.taken"
    TAG: ClassVar[int] = 9
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Bytes received so far in bodies of 64 KiB or more.
    bytes: int = 0

    def pack(self) -> Fields:
        return {
            1: self.bytes,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Taken:
        get = fields.get
        return cls(
            get(1, 0),
        )


@dataclasses.dataclass(slots=True)
class Span:
    #: State of the actor's cards.
    state: CardState = CardState.IDLE
    #: Start, on the run's clock.
    begin: int = 0
    #: End, on the run's clock.
    end: int = 0

    def pack(self) -> Fields:
        return {
            1: int(self.state),
            2: self.begin,
            3: self.end,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Span:
        get = fields.get
        return cls(
            CardState(get(1, 10)),
            get(2, 0),
            get(3, 0),
        )


@dataclasses.dataclass(slots=True)
class PlaneUse:
    #: Name of the level, `to host` or `from host`.
    plane: str = ""
    #: Bytes moved by all devices; each byte counts once.
    bytes: int = 0
    #: Bandwidth of one device in one direction.
    bandwidth: float = 0.0

    def pack(self) -> Fields:
        return {
            1: self.plane,
            2: self.bytes,
            3: self.bandwidth,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> PlaneUse:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, 0),
            get(3, 0.0),
        )


@dataclasses.dataclass(slots=True)
class MemoryUse:
    #: Highest usage.
    peak: int = 0
    #: Highest usage predicted by the memory ledger before the run.
    predicted: int = 0
    #: Available memory.
    capacity: int = 0

    def pack(self) -> Fields:
        return {
            1: self.peak,
            2: self.predicted,
            3: self.capacity,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> MemoryUse:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
        )


@dataclasses.dataclass(slots=True)
class EngineUse:
    #: Devices that only prefill; 0: all devices prefill and decode.
    prefill_devices: int = 0
    #: Time in which those devices prefilled and sent caches, or of prefill steps in which no
    #: response decoded.
    prefill: int = 0
    #: Time in which responses decoded.
    decode: int = 0
    #: Tokens that a response would have if it had decoded all that time.
    decode_tokens: int = 0

    def pack(self) -> Fields:
        return {
            1: self.prefill_devices,
            2: self.prefill,
            3: self.decode,
            4: self.decode_tokens,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> EngineUse:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
            get(4, 0),
        )


@dataclasses.dataclass(slots=True)
class Usage:
    #: Devices of the actor; a device is a die.
    devices: int = 0
    #: Model FLOP performed, without recomputation.
    flops: float = 0.0
    #: Dense BF16 peak of one device.
    peak: float = 0.0
    #: Bytes moved, by plane.
    planes: list[PlaneUse] = dataclasses.field(default_factory=list)
    #: Memory of one device.
    device: MemoryUse = dataclasses.field(default_factory=MemoryUse)
    #: Its share of host memory.
    host: MemoryUse = dataclasses.field(default_factory=MemoryUse)
    #: Of a rollout engine.
    engine: EngineUse | None = None

    def pack(self) -> Fields:
        return {
            1: self.devices,
            2: self.flops,
            3: self.peak,
            4: [x.pack() for x in self.planes],
            5: self.device.pack(),
            6: self.host.pack(),
            7: None if self.engine is None else self.engine.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Usage:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0.0),
            get(3, 0.0),
            [PlaneUse.unpack(x) for x in get(4, ())],
            MemoryUse.unpack(get(5, {})),
            MemoryUse.unpack(get(6, {})),
            None if (x := get(7, None)) is None else EngineUse.unpack(x),
        )


@dataclasses.dataclass(slots=True)
class Activity:
    """`actor.activity`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.activity"
    TAG: ClassVar[int] = 6
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Busy spans since the last report, in order.
    spans: list[Span] = dataclasses.field(default_factory=list)
    #: Sent occasionally: cumulative usage since the actor started.
    usage: Usage | None = None

    def pack(self) -> Fields:
        return {
            1: [x.pack() for x in self.spans],
            2: None if self.usage is None else self.usage.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Activity:
        get = fields.get
        return cls(
            [Span.unpack(x) for x in get(1, ())],
            None if (x := get(2, None)) is None else Usage.unpack(x),
        )


@dataclasses.dataclass(slots=True)
class Failed:
    """`actor.failed`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.failed"
    TAG: ClassVar[int] = 7
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: What failed.
    reason: str = ""
    #: A restart would fail in the same way: a missing class, a rejected model folder. At the
    #: first start of an actor this ends the run.
    permanent: bool = False
    #: A loss, gradient, weight or logit was infinite or NaN. This raises the alarm
    #: `not_finite`.
    not_finite: bool = False

    def pack(self) -> Fields:
        return {
            1: self.reason,
            2: self.permanent,
            3: self.not_finite,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Failed:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, False),
            get(3, False),
        )


@dataclasses.dataclass(slots=True)
class Stop:
    """`actor.stop`, orchestrator to worker."""

    NAME: ClassVar[str] = "actor.stop"
    TAG: ClassVar[int] = 8
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1


    def pack(self) -> Fields:
        return {}

    @classmethod
    def unpack(cls, fields: Fields) -> Stop:
        return cls()


@dataclasses.dataclass(slots=True)
class Left:
    """`actor.left`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.left"
    TAG: ClassVar[int] = 10
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Why it leaves. It sends nothing after this.
    reason: str = ""

    def pack(self) -> Fields:
        return {
            1: self.reason,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Left:
        get = fields.get
        return cls(
            get(1, ""),
        )


@dataclasses.dataclass(slots=True)
class GenerateItem:
    #: Which response.
    response: int = 0
    #: Tokens from an interrupted attempt.
    prefix: Int32Array = dataclasses.field(default_factory=no_i4)

    def pack(self) -> Fields:
        return {
            1: self.response,
            2: of_i4(self.prefix),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> GenerateItem:
        get = fields.get
        return cls(
            get(1, 0),
            i4(get(2, b"")),
        )


@dataclasses.dataclass(slots=True)
class Generate:
    """`rollout.generate`, orchestrator to worker."""

    NAME: ClassVar[str] = "rollout.generate"
    TAG: ClassVar[int] = 20
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this dispatch.
    lease: int = 0
    #: Token ids, shared by the group.
    prompt: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Responses to generate.
    items: list[GenerateItem] = dataclasses.field(default_factory=list)
    #: Greedy decoding, whatever `sampling` says.
    greedy: bool = False

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: of_i4(self.prompt),
            3: [x.pack() for x in self.items],
            4: self.greedy,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Generate:
        get = fields.get
        return cls(
            get(1, 0),
            i4(get(2, b"")),
            [GenerateItem.unpack(x) for x in get(3, ())],
            get(4, False),
        )


@dataclasses.dataclass(slots=True)
class Segment:
    #: Policy version.
    version: int = 0
    #: Number of consecutive tokens.
    tokens: int = 0

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.tokens,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Segment:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
        )


@dataclasses.dataclass(slots=True)
class Tensor:
    #: Name.
    name: str = ""
    #: Type of an element, as numpy names it: `int32`.
    dtype: str = ""
    #: Shape, in C order.
    shape: list[int] = dataclasses.field(default_factory=list)
    #: Size of the array.
    bytes: int = 0
    #: XXH3 (64 bits) of its bytes.
    checksum: int = 0
    #: From an engine: name of a file in the folder `tensors.folder` of its role, or of a key
    #: without `tensors.prefix`. To a trainer: a path, or a whole key.
    file: str = ""

    def pack(self) -> Fields:
        return {
            1: self.name,
            2: self.dtype,
            3: self.shape,
            4: self.bytes,
            5: self.checksum,
            6: self.file,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Tensor:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, ""),
            get(3, []),
            get(4, 0),
            get(5, 0),
            get(6, ""),
        )


@dataclasses.dataclass(slots=True)
class GeneratedItem:
    #: Lease it was dispatched under.
    lease: int = 0
    #: Which response.
    response: int = 0
    #: Token ids sampled by this attempt, without the prefix.
    tokens: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Log-prob of each token as sampled.
    logprobs: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Consecutive tokens by policy version.
    segments: list[Segment] = dataclasses.field(default_factory=list)
    #: Why it ended.
    finish: FinishReason = FinishReason.END
    #: Per token: 1 if the policy sampled it, 0 if it came from elsewhere (a tool, a user turn).
    #: A token with 0 has log-prob 0 and is not trained on. Empty: all 1.
    mask: Uint8Array = dataclasses.field(default_factory=no_u1)
    #: Per token: a reward assigned during generation (by an environment, at the end of a turn);
    #: empty: none. They are added to the reward of the whole response.
    rewards: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Why it failed, if `finish` is `failed`.
    failure: str = ""
    #: Arrays for the trainer, about the whole response. None if it was interrupted.
    tensors: list[Tensor] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: self.response,
            3: of_i4(self.tokens),
            4: of_f4(self.logprobs),
            5: [x.pack() for x in self.segments],
            6: int(self.finish),
            7: of_u1(self.mask),
            8: of_f4(self.rewards),
            9: self.failure,
            10: [x.pack() for x in self.tensors],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> GeneratedItem:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            i4(get(3, b"")),
            f4(get(4, b"")),
            [Segment.unpack(x) for x in get(5, ())],
            FinishReason(get(6, 0)),
            u1(get(7, b"")),
            f4(get(8, b"")),
            get(9, ""),
            [Tensor.unpack(x) for x in get(10, ())],
        )


@dataclasses.dataclass(slots=True)
class Generated:
    """`rollout.generated`, worker to orchestrator."""

    NAME: ClassVar[str] = "rollout.generated"
    TAG: ClassVar[int] = 21
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Responses.
    items: list[GeneratedItem] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: [x.pack() for x in self.items],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Generated:
        get = fields.get
        return cls(
            [GeneratedItem.unpack(x) for x in get(1, ())],
        )


@dataclasses.dataclass(slots=True)
class Cancel:
    """`rollout.cancel`, orchestrator to worker."""

    NAME: ClassVar[str] = "rollout.cancel"
    TAG: ClassVar[int] = 22
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Responses that are no longer needed.
    responses: list[int] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.responses,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Cancel:
        get = fields.get
        return cls(
            get(1, []),
        )


@dataclasses.dataclass(slots=True)
class Withdraw:
    """`rollout.withdraw`, orchestrator to worker."""

    NAME: ClassVar[str] = "rollout.withdraw"
    TAG: ClassVar[int] = 23
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Responses that continue on another engine.
    responses: list[int] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.responses,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Withdraw:
        get = fields.get
        return cls(
            get(1, []),
        )


@dataclasses.dataclass(slots=True)
class ScoreReferenceItem:
    #: Prompt token ids.
    prompt: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Response token ids.
    response: Int32Array = dataclasses.field(default_factory=no_i4)

    def pack(self) -> Fields:
        return {
            1: of_i4(self.prompt),
            2: of_i4(self.response),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> ScoreReferenceItem:
        get = fields.get
        return cls(
            i4(get(1, b"")),
            i4(get(2, b"")),
        )


@dataclasses.dataclass(slots=True)
class ScoreReference:
    """`reference.score`, orchestrator to worker."""

    NAME: ClassVar[str] = "reference.score"
    TAG: ClassVar[int] = 30
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this batch.
    lease: int = 0
    #: Responses to score.
    items: list[ScoreReferenceItem] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: [x.pack() for x in self.items],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> ScoreReference:
        get = fields.get
        return cls(
            get(1, 0),
            [ScoreReferenceItem.unpack(x) for x in get(2, ())],
        )


@dataclasses.dataclass(slots=True)
class ReferenceScored:
    """`reference.scored`, worker to orchestrator."""

    NAME: ClassVar[str] = "reference.scored"
    TAG: ClassVar[int] = 31
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the batch.
    lease: int = 0
    #: Per item, one log-prob per response token.
    logprobs: list[Float32Array] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: [of_f4(x) for x in self.logprobs],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> ReferenceScored:
        get = fields.get
        return cls(
            get(1, 0),
            [f4(x) for x in get(2, ())],
        )


@dataclasses.dataclass(slots=True)
class JudgeItem:
    #: Prompt text.
    prompt: str = ""
    #: Expected answer.
    answer: str = ""
    #: Response token ids.
    response: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Other columns of the prompt's row in its file, as a JSON object; or empty.
    columns: str = ""

    def pack(self) -> Fields:
        return {
            1: self.prompt,
            2: self.answer,
            3: of_i4(self.response),
            4: self.columns,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> JudgeItem:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, ""),
            i4(get(3, b"")),
            get(4, ""),
        )


@dataclasses.dataclass(slots=True)
class Judge:
    """`reward.judge`, orchestrator to worker."""

    NAME: ClassVar[str] = "reward.judge"
    TAG: ClassVar[int] = 40
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this batch.
    lease: int = 0
    #: Responses to judge.
    items: list[JudgeItem] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: [x.pack() for x in self.items],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Judge:
        get = fields.get
        return cls(
            get(1, 0),
            [JudgeItem.unpack(x) for x in get(2, ())],
        )


@dataclasses.dataclass(slots=True)
class JudgedItem:
    #: The reward, if judged.
    reward: float = 0.0
    #: Why judging failed; empty if it succeeded.
    failure: str = ""

    def pack(self) -> Fields:
        return {
            1: self.reward,
            2: self.failure,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> JudgedItem:
        get = fields.get
        return cls(
            get(1, 0.0),
            get(2, ""),
        )


@dataclasses.dataclass(slots=True)
class JudgeUsage:
    #: Requests, repeated ones included.
    requests: int = 0
    #: Scores that a request for an equal question gave.
    cached: int = 0
    #: Requests that repeat a failed one.
    retries: int = 0
    #: Tokens of the questions, as reported.
    input_tokens: int = 0
    #: Tokens of the replies, as reported.
    output_tokens: int = 0
    #: Price of these tokens, by the prices of the judge.
    cost: float = 0.0

    def pack(self) -> Fields:
        return {
            1: self.requests,
            2: self.cached,
            3: self.retries,
            4: self.input_tokens,
            5: self.output_tokens,
            6: self.cost,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> JudgeUsage:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
            get(4, 0),
            get(5, 0),
            get(6, 0.0),
        )


@dataclasses.dataclass(slots=True)
class Judged:
    """`reward.judged`, worker to orchestrator."""

    NAME: ClassVar[str] = "reward.judged"
    TAG: ClassVar[int] = 41
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the batch.
    lease: int = 0
    #: One verdict per response, in order.
    items: list[JudgedItem] = dataclasses.field(default_factory=list)
    #: The verifier has failed several times and given no reward since it was started. Ends a
    #: run that has had no reward yet.
    gave_up: bool = False
    #: Of a sum of verifiers: the reward of each term by name, before its weight, one number per
    #: response; NaN where the term does not apply.
    terms: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    #: Work of judges since the last message; nil: none.
    usage: JudgeUsage | None = None

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: [x.pack() for x in self.items],
            3: self.gave_up,
            4: self.terms,
            5: None if self.usage is None else self.usage.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Judged:
        get = fields.get
        return cls(
            get(1, 0),
            [JudgedItem.unpack(x) for x in get(2, ())],
            get(3, False),
            get(4, {}),
            None if (x := get(5, None)) is None else JudgeUsage.unpack(x),
        )


@dataclasses.dataclass(slots=True)
class CertificateEntry:
    #: Which group.
    group: int = 0
    #: v0: version when the group's first token was dispatched.
    dispatched: int = 0
    #: Version from which its age is counted, if not v0: the mean version of its tokens, rounded
    #: down.
    counted_from: int | None = None

    def pack(self) -> Fields:
        return {
            1: self.group,
            2: self.dispatched,
            3: self.counted_from,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> CertificateEntry:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, None),
        )


@dataclasses.dataclass(slots=True)
class Certificate:
    #: T: the policy version being updated.
    step: int = 0
    #: Largest allowed age, in versions.
    bound: int = 0
    #: The groups of the batch.
    groups: list[CertificateEntry] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.step,
            2: self.bound,
            3: [x.pack() for x in self.groups],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Certificate:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            [CertificateEntry.unpack(x) for x in get(3, ())],
        )


@dataclasses.dataclass(slots=True)
class TrainItem:
    #: Group of the response.
    group: int = 0
    #: Prompt token ids.
    prompt: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Response token ids.
    response: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Behavior log-probs, recorded at sampling.
    logprobs: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Reference log-probs; empty without a reference.
    reference: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Reward of the response.
    reward: float = 0.0
    #: Policy version of its first token.
    first_version: int = 0
    #: Consecutive tokens by policy version.
    segments: list[Segment] = dataclasses.field(default_factory=list)
    #: As in rollout.generated.
    mask: Uint8Array = dataclasses.field(default_factory=no_u1)
    #: As in rollout.generated.
    rewards: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Which response; errors name it.
    id: int = 0
    #: Arrays that its engine attached.
    tensors: list[Tensor] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.group,
            2: of_i4(self.prompt),
            3: of_i4(self.response),
            4: of_f4(self.logprobs),
            5: of_f4(self.reference),
            6: self.reward,
            7: self.first_version,
            8: [x.pack() for x in self.segments],
            9: of_u1(self.mask),
            10: of_f4(self.rewards),
            11: self.id,
            12: [x.pack() for x in self.tensors],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> TrainItem:
        get = fields.get
        return cls(
            get(1, 0),
            i4(get(2, b"")),
            i4(get(3, b"")),
            f4(get(4, b"")),
            f4(get(5, b"")),
            get(6, 0.0),
            get(7, 0),
            [Segment.unpack(x) for x in get(8, ())],
            u1(get(9, b"")),
            f4(get(10, b"")),
            get(11, 0),
            [Tensor.unpack(x) for x in get(12, ())],
        )


@dataclasses.dataclass(slots=True)
class Train:
    """`trainer.train`, orchestrator to worker."""

    NAME: ClassVar[str] = "trainer.train"
    TAG: ClassVar[int] = 50
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this update.
    lease: int = 0
    #: Versions, ages and bound of the batch.
    certificate: Certificate = dataclasses.field(default_factory=Certificate)
    #: Responses; those of a group are adjacent.
    items: list[TrainItem] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: self.certificate.pack(),
            3: [x.pack() for x in self.items],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Train:
        get = fields.get
        return cls(
            get(1, 0),
            Certificate.unpack(get(2, {})),
            [TrainItem.unpack(x) for x in get(3, ())],
        )


@dataclasses.dataclass(slots=True)
class UpdateMetrics:
    #: Loss, mean over minibatches.
    loss: float = 0.0
    #: k3 estimate to the reference.
    kl: float = 0.0
    #: Share of tokens clipped.
    clip_fraction: float = 0.0
    #: Mean probability ratio before the update.
    ratio_mean: float = 0.0
    #: Mean of -log-prob.
    entropy: float = 0.0
    #: Before clipping.
    gradient_norm: float = 0.0
    #: Mean reward of the batch.
    reward_mean: float = 0.0
    #: Forward-backward passes.
    micro_batches: int = 0
    #: Prompt and response tokens.
    tokens: int = 0
    #: Mean of |log ratio| before the update.
    log_ratio: float = 0.0
    #: Mean weight of stale tokens.
    behaviour_weight: float = 0.0
    #: Share of tokens whose weight was outside its range.
    capped_fraction: float = 0.0
    #: Effective sample size of the importance ratios before the update, as a share of the
    #: tokens. 0: unknown.
    effective_samples: float = 0.0
    #: Mean of |log ratio| of tokens that the version being updated sampled.
    mismatch: float = 0.0
    #: Mean of |log ratio| of tokens that older versions sampled.
    stale_ratio: float = 0.0
    #: Share of tokens of older versions.
    stale_tokens: float = 0.0
    #: Loss of the critic, mean over minibatches; absent without a critic, as the following.
    critic_loss: float | None = None
    #: Mean value of the tokens before the update.
    critic_value_mean: float | None = None
    #: 1 - Var(return - value) / Var(return) of the tokens before the update. 0 if all returns
    #: are equal.
    critic_explained_variance: float | None = None
    #: Share of tokens whose value was clipped.
    critic_clip_fraction: float | None = None
    #: Learning rate of the policy in this step; absent if it was not trained.
    learning_rate: float | None = None

    def pack(self) -> Fields:
        return {
            1: self.loss,
            2: self.kl,
            3: self.clip_fraction,
            4: self.ratio_mean,
            5: self.entropy,
            6: self.gradient_norm,
            7: self.reward_mean,
            8: self.micro_batches,
            9: self.tokens,
            10: self.log_ratio,
            11: self.behaviour_weight,
            12: self.capped_fraction,
            13: self.effective_samples,
            14: self.mismatch,
            15: self.stale_ratio,
            16: self.stale_tokens,
            17: self.critic_loss,
            18: self.critic_value_mean,
            19: self.critic_explained_variance,
            20: self.critic_clip_fraction,
            21: self.learning_rate,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> UpdateMetrics:
        get = fields.get
        return cls(
            get(1, 0.0),
            get(2, 0.0),
            get(3, 0.0),
            get(4, 0.0),
            get(5, 0.0),
            get(6, 0.0),
            get(7, 0.0),
            get(8, 0),
            get(9, 0),
            get(10, 0.0),
            get(11, 0.0),
            get(12, 0.0),
            get(13, 0.0),
            get(14, 0.0),
            get(15, 0.0),
            get(16, 0.0),
            get(17, None),
            get(18, None),
            get(19, None),
            get(20, None),
            get(21, None),
        )


@dataclasses.dataclass(slots=True)
class WeightsHandle:
    #: Policy version of the image.
    version: int = 0
    #: Size of the image, one safetensors file (for synthetic engines: any bytes).
    bytes: int = 0
    #: XXH3-64 of the image.
    checksum: int = 0
    #: Process that holds the memfd.
    pid: int = 0
    #: Descriptor in that process; negative: sent as chunks.
    fd: int = -1
    #: File with the image on a shared file system; then no chunks are sent.
    path: str = ""

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.bytes,
            3: self.checksum,
            4: self.pid,
            5: self.fd,
            6: self.path,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> WeightsHandle:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
            get(4, 0),
            get(5, -1),
            get(6, ""),
        )


@dataclasses.dataclass(slots=True)
class Trained:
    """`trainer.trained`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.trained"
    TAG: ClassVar[int] = 51
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the update.
    lease: int = 0
    #: Groups that the trainer trained on.
    groups: list[int] = dataclasses.field(default_factory=list)
    #: Metrics of this update.
    metrics: UpdateMetrics = dataclasses.field(default_factory=UpdateMetrics)
    #: The new version.
    weights: WeightsHandle = dataclasses.field(default_factory=WeightsHandle)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: self.groups,
            3: self.metrics.pack(),
            4: self.weights.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Trained:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, []),
            UpdateMetrics.unpack(get(3, {})),
            WeightsHandle.unpack(get(4, {})),
        )


@dataclasses.dataclass(slots=True)
class Prepare:
    """`trainer.prepare`, orchestrator to worker."""

    NAME: ClassVar[str] = "trainer.prepare"
    TAG: ClassVar[int] = 55
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this work.
    lease: int = 0
    #: Policy version being updated.
    step: int = 0
    #: Responses; those of a group are adjacent.
    items: list[TrainItem] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: self.step,
            3: [x.pack() for x in self.items],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Prepare:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            [TrainItem.unpack(x) for x in get(3, ())],
        )


@dataclasses.dataclass(slots=True)
class Prepared:
    """`trainer.prepared`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.prepared"
    TAG: ClassVar[int] = 56
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the work.
    lease: int = 0

    def pack(self) -> Fields:
        return {
            1: self.lease,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Prepared:
        get = fields.get
        return cls(
            get(1, 0),
        )


@dataclasses.dataclass(slots=True)
class SaveState:
    """`trainer.save`, orchestrator to worker."""

    NAME: ClassVar[str] = "trainer.save"
    TAG: ClassVar[int] = 52
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Current version of the trainer.
    version: int = 0
    #: Existing folder to write into.
    folder: str = ""

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.folder,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> SaveState:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, ""),
        )


@dataclasses.dataclass(slots=True)
class StateSaved:
    """`trainer.saved`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.saved"
    TAG: ClassVar[int] = 53
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version saved.
    version: int = 0
    #: Why saving failed; empty if it succeeded.
    error: str = ""

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.error,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> StateSaved:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, ""),
        )


@dataclasses.dataclass(slots=True)
class TrainerReady:
    """`trainer.ready`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.ready"
    TAG: ClassVar[int] = 60
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Its current weights.
    weights: WeightsHandle = dataclasses.field(default_factory=WeightsHandle)

    def pack(self) -> Fields:
        return {
            1: self.weights.pack(),
        }

    @classmethod
    def unpack(cls, fields: Fields) -> TrainerReady:
        get = fields.get
        return cls(
            WeightsHandle.unpack(get(1, {})),
        )


@dataclasses.dataclass(slots=True)
class StageWeights:
    """`weights.stage`, orchestrator to worker."""

    NAME: ClassVar[str] = "weights.stage"
    TAG: ClassVar[int] = 61
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: What to load and from where.
    weights: WeightsHandle = dataclasses.field(default_factory=WeightsHandle)
    #: For a worker that relays weights: other workers that have the image or are receiving it.
    #: The worker asks them in this order (weights.fetch), and the orchestrator last. Empty: the
    #: orchestrator sends the image without being asked.
    sources: list[RelayAddress] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: self.weights.pack(),
            2: [x.pack() for x in self.sources],
        }

    @classmethod
    def unpack(cls, fields: Fields) -> StageWeights:
        get = fields.get
        return cls(
            WeightsHandle.unpack(get(1, {})),
            [RelayAddress.unpack(x) for x in get(2, ())],
        )


@dataclasses.dataclass(slots=True)
class WeightsChunk:
    """`weights.chunk`, both ways."""

    NAME: ClassVar[str] = "weights.chunk"
    TAG: ClassVar[int] = 62
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Policy version of the image.
    version: int = 0
    #: Position of the chunk in the image, in bytes.
    offset: int = 0
    #: XXH3-64 of the chunk.
    checksum: int = 0
    #: The chunk, at most 1 MiB.
    data: bytes = b""

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.offset,
            3: self.checksum,
            4: self.data,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> WeightsChunk:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
            get(4, b""),
        )


@dataclasses.dataclass(slots=True)
class WeightsStaged:
    """`weights.staged`, worker to orchestrator."""

    NAME: ClassVar[str] = "weights.staged"
    TAG: ClassVar[int] = 63
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version staged.
    version: int = 0
    #: Why staging failed; empty if it succeeded.
    error: str = ""

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.error,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> WeightsStaged:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, ""),
        )


@dataclasses.dataclass(slots=True)
class FetchWeights:
    """`weights.fetch`, worker to orchestrator."""

    NAME: ClassVar[str] = "weights.fetch"
    TAG: ClassVar[int] = 66
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Policy version of the image.
    version: int = 0
    #: Checksum of the whole image, as announced.
    checksum: int = 0
    #: Offset of the first missing chunk, in bytes.
    offset: int = 0

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.checksum,
            3: self.offset,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> FetchWeights:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
        )


@dataclasses.dataclass(slots=True)
class FeedWeights:
    """`weights.feed`, orchestrator to worker."""

    NAME: ClassVar[str] = "weights.feed"
    TAG: ClassVar[int] = 67
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Public key of the other worker.
    key: str = ""
    #: Whether it may fetch weights from now on.
    admitted: bool = True

    def pack(self) -> Fields:
        return {
            1: self.key,
            2: self.admitted,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> FeedWeights:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, True),
        )


@dataclasses.dataclass(slots=True)
class CommitWeights:
    """`weights.commit`, orchestrator to worker."""

    NAME: ClassVar[str] = "weights.commit"
    TAG: ClassVar[int] = 64
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version to switch to.
    version: int = 0

    def pack(self) -> Fields:
        return {
            1: self.version,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> CommitWeights:
        get = fields.get
        return cls(
            get(1, 0),
        )


@dataclasses.dataclass(slots=True)
class WeightsCommitted:
    """`weights.committed`, worker to orchestrator."""

    NAME: ClassVar[str] = "weights.committed"
    TAG: ClassVar[int] = 65
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version that is now in use.
    version: int = 0
    #: Why the commit failed; empty if it succeeded.
    error: str = ""

    def pack(self) -> Fields:
        return {
            1: self.version,
            2: self.error,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> WeightsCommitted:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, ""),
        )


@dataclasses.dataclass(slots=True)
class Switch:
    """`placement.switch`, orchestrator to worker."""

    NAME: ClassVar[str] = "placement.switch"
    TAG: ClassVar[int] = 70
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: The action.
    action: SwitchAction = SwitchAction.INTERRUPT
    #: For onloading: the cards that the actor may use from now on; empty: all its cards.
    cards: list[int] = dataclasses.field(default_factory=list)

    def pack(self) -> Fields:
        return {
            1: int(self.action),
            2: self.cards,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Switch:
        get = fields.get
        return cls(
            SwitchAction(get(1, 0)),
            get(2, []),
        )


@dataclasses.dataclass(slots=True)
class SwitchCost:
    #: Wall time of the action.
    duration: int = 0
    #: Bytes on the card before.
    device_before: int = 0
    #: Bytes on the card after.
    device_after: int = 0
    #: Bytes parked on the host before.
    host_before: int = 0
    #: Bytes parked on the host after.
    host_after: int = 0
    #: Highest resident memory so far.
    process_peak: int = 0
    #: Resident memory after.
    process_after: int = 0

    def pack(self) -> Fields:
        return {
            1: self.duration,
            2: self.device_before,
            3: self.device_after,
            4: self.host_before,
            5: self.host_after,
            6: self.process_peak,
            7: self.process_after,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> SwitchCost:
        get = fields.get
        return cls(
            get(1, 0),
            get(2, 0),
            get(3, 0),
            get(4, 0),
            get(5, 0),
            get(6, 0),
            get(7, 0),
        )


@dataclasses.dataclass(slots=True)
class Switched:
    """`placement.switched`, worker to orchestrator."""

    NAME: ClassVar[str] = "placement.switched"
    TAG: ClassVar[int] = 71
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: The action.
    action: SwitchAction = SwitchAction.INTERRUPT
    #: Time and bytes.
    cost: SwitchCost = dataclasses.field(default_factory=SwitchCost)
    #: Why the action failed; empty if it succeeded.
    error: str = ""

    def pack(self) -> Fields:
        return {
            1: int(self.action),
            2: self.cost.pack(),
            3: self.error,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Switched:
        get = fields.get
        return cls(
            SwitchAction(get(1, 0)),
            SwitchCost.unpack(get(2, {})),
            get(3, ""),
        )


#: Every message of a worker on real hardware.
MESSAGES: tuple[Any, ...] = (
    Hello,
    Welcome,
    Reject,
    Ready,
    Heartbeat,
    Taken,
    Activity,
    Failed,
    Stop,
    Left,
    Generate,
    Generated,
    Cancel,
    Withdraw,
    ScoreReference,
    ReferenceScored,
    Judge,
    Judged,
    Train,
    Trained,
    Prepare,
    Prepared,
    SaveState,
    StateSaved,
    TrainerReady,
    StageWeights,
    WeightsChunk,
    WeightsStaged,
    FetchWeights,
    FeedWeights,
    CommitWeights,
    WeightsCommitted,
    Switch,
    Switched,
)


#: Reads the body of a message, by its tag.
UNPACK: dict[int, Callable[[Fields], Any]] = {m.TAG: m.unpack for m in MESSAGES}


#: Reads RoleConfig.settings, by role.
SETTINGS: dict[str, Callable[[Fields], Any]] = {
    "reference": TrainerSettings.unpack,
    "rollout": RolloutSettings.unpack,
    "trainer": TrainerSettings.unpack,
}
