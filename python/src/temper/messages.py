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


class Objective(enum.IntEnum):
    CLIP = 0
    NAIVE = 1
    DECOUPLED = 2
    TIS = 3
    CISPO = 4
    REINFORCE = 5


class AdvantageMean(enum.IntEnum):
    NONE = 0
    GROUP = 1
    BATCH = 2
    LEAVE_ONE_OUT = 3


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


class OnNewWeights(enum.IntEnum):
    KEEP_KV = 0
    RECOMPUTE = 1


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


class TaskKind(enum.IntEnum):
    ADDITION = 0
    JSONL = 1


class TokenizerKind(enum.IntEnum):
    AUTO = 0
    BYTES = 1
    CHARACTERS = 2


class VerifierKind(enum.IntEnum):
    EXACT = 0
    NUMERIC = 1
    REGEX = 2
    COMMAND = 3
    PYTHON = 4


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
    #: Given: the second frame is a piece of the body.
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
class AlgorithmConfig:
    #: Row of the table of algorithms (docs/reference/algorithms.md); null keys are as it says.
    name: AlgorithmName = AlgorithmName.GRPO
    #: B: prompts per policy update.
    groups_per_update: int = 64
    #: G: responses per prompt.
    responses_per_group: int = 16
    #: Optimizer steps per update.
    minibatches: int = 4
    #: Ratio clip below: 1 - clip_low.
    clip_low: float | None = None
    #: Ratio clip above: 1 + clip_high.
    clip_high: float | None = None
    #: Weight of the k3 KL estimate to the reference; 0 trains without it.
    kl: float = 0.0
    #: Added to a deviation of rewards.
    advantage_epsilon: float = 0.0001
    #: AdamW step size.
    learning_rate: float = 0.0002
    #: AdamW first moment.
    beta1: float = 0.9
    #: AdamW second moment.
    beta2: float = 0.95
    #: AdamW denominator.
    adam_epsilon: float = 1e-08
    #: AdamW decoupled decay.
    weight_decay: float = 0.0
    #: Largest global gradient norm.
    gradient_clip: float = 1.0
    #: Tokens (padding included) of one forward and backward pass.
    micro_batch_tokens: int = 16384
    #: Loss of a token: `clip` (around the behaviour policy), `naive` (around the proximal
    #: policy, nothing corrects for the stale sampler), `decoupled`, `tis`, `cispo`,
    #: `reinforce`.
    objective: Objective | None = None
    #: Subtracted from a reward.
    advantage_mean: AdvantageMean | None = None
    #: Deviation by which advantages are divided.
    advantage_std: AdvantageStd | None = None
    #: Ratios of tokens, or their mean over a response.
    ratio: RatioLevel | None = None
    #: Mean over tokens, over responses of their mean, or sum over tokens by responses times
    #: `sampling.max_new_tokens`.
    average: Averaging | None = None
    #: decoupled, tis: largest weight of proximal over behaviour probability.
    behaviour_weight_cap: float | None = None
    #: decoupled: what happens to a token above it.
    behaviour_weight_mode: WeightMode | None = None
    #: A judged group whose rewards are all equal is replaced by a new one.
    filter_equal_rewards: bool | None = None
    #: Groups replaced so between two updates, as multiples of groups_per_update; further ones
    #: are trained, so that a run ends whose every prompt is solved.
    filter_limit: float = 16.0
    #: Groups that may fail between two updates, as multiples of groups_per_update, and at least
    #: 16; one more ends the run with the reason of the last.
    failure_limit: float = 8.0
    #: The last so many tokens before `sampling.max_new_tokens` lower the reward linearly, down
    #: to `overlong_penalty` less; 0: none do.
    overlong_buffer: int | None = None
    #: Taken from the reward of a response of full length.
    overlong_penalty: float = 1.0

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
            9: self.beta1,
            10: self.beta2,
            11: self.adam_epsilon,
            12: self.weight_decay,
            13: self.gradient_clip,
            14: self.micro_batch_tokens,
            16: None if self.objective is None else int(self.objective),
            17: None if self.advantage_mean is None else int(self.advantage_mean),
            18: None if self.advantage_std is None else int(self.advantage_std),
            19: None if self.ratio is None else int(self.ratio),
            20: None if self.average is None else int(self.average),
            21: self.behaviour_weight_cap,
            22: None if self.behaviour_weight_mode is None else int(self.behaviour_weight_mode),
            23: self.filter_equal_rewards,
            24: self.filter_limit,
            27: self.failure_limit,
            25: self.overlong_buffer,
            26: self.overlong_penalty,
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
            get(9, 0.9),
            get(10, 0.95),
            get(11, 1e-08),
            get(12, 0.0),
            get(13, 1.0),
            get(14, 16384),
            None if (x := get(16, None)) is None else Objective(x),
            None if (x := get(17, None)) is None else AdvantageMean(x),
            None if (x := get(18, None)) is None else AdvantageStd(x),
            None if (x := get(19, None)) is None else RatioLevel(x),
            None if (x := get(20, None)) is None else Averaging(x),
            get(21, None),
            None if (x := get(22, None)) is None else WeightMode(x),
            get(23, None),
            get(24, 16.0),
            get(27, 8.0),
            get(25, None),
            get(26, 1.0),
        )


@dataclasses.dataclass(slots=True)
class TrainerSettings:
    #: How a batch becomes an update.
    algorithm: AlgorithmConfig = dataclasses.field(default_factory=AlgorithmConfig)
    #: Of sampling; log-probs are computed at it.
    temperature: float = 1.0
    #: Synthetic: time of an update.
    synthetic_step: int = 0
    #: Synthetic: size of a version.
    synthetic_weights: int = 0
    #: That sampling allows, in tokens.
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
    #: Divides the logits; recorded log-probs are of the distribution sampled from.
    temperature: float = 1.0
    #: Nucleus sampling: the smallest set of tokens with this much mass.
    top_p: float = 1.0
    #: Longest response, in tokens.
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
    #: The program and its arguments, started beside each engine (docs/how-to/agents.md); empty:
    #: none, and every response is one turn.
    command: list[str] = dataclasses.field(default_factory=list)
    #: How many of them for each engine; each plays many episodes at once.
    processes: int = 1
    #: Requests of one episode at most.
    turns: int = 16
    #: Time for one episode; past it its response fails.
    deadline: int = 120000000000
    #: Variables that the program is given of ours, beside those that every program is given
    #: (verifier.environment).
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
    #: Responses in flight at most.
    concurrency: int = 128
    #: Synthetic: length of every response.
    synthetic_tokens: int = 256
    #: Synthetic: time of a step.
    synthetic_step: int = 0
    #: What running responses go on with when weights change.
    on_new_weights: OnNewWeights = OnNewWeights.KEEP_KV
    #: What is awaited soonest enters the batch first.
    deadline_first: bool = False
    #: Who plays responses of several turns.
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
    #: Where it listens; empty: it passes nothing on.
    endpoint: str = ""
    #: Its open key there, which is also the one that it asks others with: CURVE, in ZeroMQ's
    #: text form.
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
    #: Actor slot, e.g. `rollout-0`. Attached also a role (`rollout`: a free slot of it), `any`
    #: (a free slot), or `#` and a rank (that attached slot, from 0, or else a free one).
    name: str = ""
    #: Launch secret of the run.
    secret: str = ""
    #: Process id on its host.
    pid: int = 0
    #: Host name.
    host: str = ""
    #: It was not started by the orchestrator.
    attached: bool = False
    #: Attached: the slot that it had before, which it is given again if it is free.
    was: str = ""
    #: Attached: the run that its key is of.
    run: str = ""
    #: Attached: of the orchestrator that it knew last; 0: it knew none.
    incarnation: int = 0
    #: Attached: where it passes weights on to others.
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
    #: Slow angles turn this many times slower.
    factor: float = 8.0
    #: An angle is slow that turns at most this often in `original_context`.
    low_freq_factor: float = 1.0
    #: One that turns this often or more stays as it is; above `low_freq_factor`. What is
    #: between is in between.
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
    #: Longest prompt plus response, in tokens. With `path`: at most, and unless given, the
    #: folder's max_position_embeddings.
    context: int = 32
    #: Base of the rotary angles.
    rope_base: float = 10000.0
    #: Which network, by its name in a config.json.
    architecture: Architecture = Architecture.LLAMAFORCAUSALLM
    #: Width of a head, an even number; unless given, hidden / heads.
    head_dim: int | None = None
    #: Added to the mean square of a norm.
    norm_epsilon: float = 1e-06
    #: Whether the embedding is the head too.
    tie_embeddings: bool = False
    #: Rows of the embedding; unless given, the tokens of the task's tokenizer.
    vocabulary: int | None = None
    #: Folder of a Hugging Face model: the run begins with its weights, all other keys of this
    #: section but `context` and `ignore` are read from its config.json, and nothing is
    #: pretrained. Empty: the base is pretrained.
    path: str = ""
    #: Tokens that end a response. Empty: with `path`, the eos_token_id of its
    #: generation_config.json or config.json; else that of the task's tokenizer.
    end_tokens: Int32Array = dataclasses.field(default_factory=no_i4)
    #: The `llama3` scaling of rotary angles; null: none.
    rope_scaling: RopeScaling | None = None
    #: With `path`: keys of its config.json that are not known here and that you know not to
    #: change what the network computes. A run warns of each that it ignores.
    ignore: list[str] = dataclasses.field(default_factory=list)

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
        )


@dataclasses.dataclass(slots=True)
class TaskConfig:
    #: `addition` (built in) or `jsonl` (a file of prompts).
    kind: TaskKind = TaskKind.ADDITION
    #: addition: digits of each summand.
    digits: int = 3
    #: addition: the answer is written least significant digit first, which a small model learns
    #: far sooner.
    reverse_answer: bool = True
    #: Share of the problems kept out of training, for `evaluation`.
    held_out: float = 0.1
    #: jsonl: the file; each line has `prompt` and `answer`, or `question` and `answer`.
    path: str = ""
    #: `auto` takes `characters` for addition and `bytes` for jsonl.
    tokenizer: TokenizerKind = TokenizerKind.AUTO

    def pack(self) -> Fields:
        return {
            1: int(self.kind),
            2: self.digits,
            3: self.reverse_answer,
            4: self.held_out,
            5: self.path,
            6: int(self.tokenizer),
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
        )


@dataclasses.dataclass(slots=True)
class VerifierConfig:
    #: How a response earns its reward.
    kind: VerifierKind = VerifierKind.EXACT
    #: numeric: accepted distance from the answer.
    tolerance: float = 1e-06
    #: regex: ECMAScript pattern the response must contain; `{answer}` stands for the escaped
    #: answer.
    pattern: str = ""
    #: command: executable and arguments; one JSON line in and one out per response.
    command: list[str] = dataclasses.field(default_factory=list)
    #: command, python: processes kept running.
    pool: int = 2
    #: command: time for one response; past it the process is replaced and the sample counts as
    #: failed. python: the same for one call, with its responses.
    deadline: int = 5000000000
    #: command: what the program may do. `none`: what its user may. `limits`: bounded memory,
    #: files and descriptors, no new privileges. `namespaces`: besides, no network, no other
    #: process in sight, file systems read-only, /tmp empty and its own.
    sandbox: SandboxKind = SandboxKind.LIMITS
    #: command: most memory of the program and all it starts, unless `sandbox: none`.
    memory: int = 8589934592
    #: command: variables that the program is given of ours, beside PATH, HOME, USER, LANG,
    #: LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS. No other is.
    environment: list[str] = dataclasses.field(default_factory=list)
    #: command, `sandbox: namespaces`: folders that look empty to the program.
    hidden: list[str] = dataclasses.field(default_factory=list)
    #: python: module and function, called as TRL calls a reward function: f(prompts,
    #: completions, completion_ids, **columns) gives a list of numbers.
    function: str = ""
    #: python: several functions, each with the weight of its reward in the sum.
    functions: dict[str, float] = dataclasses.field(default_factory=dict)

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
            12: self.functions,
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
            get(12, {}),
        )


@dataclasses.dataclass(slots=True)
class EngineConfig:
    #: `native`: our own engine; `python`: a class of the user's; `command`: a program that
    #: speaks the protocol (docs/how-to/write-a-role.md); `vllm`, `sglang`, `openai`,
    #: `llamacpp`: servers (docs/how-to/servers.md).
    kind: EngineKind = EngineKind.NATIVE
    #: python: module and class.
    use: str = ""
    #: python: its keyword arguments; what reads as JSON (a number, `true`, a list) is given as
    #: that, all else as text.
    with_: dict[str, str] = dataclasses.field(default_factory=dict)
    #: python: the interpreter, with the package `temper`; empty: TEMPER_PYTHON of the
    #: environment, else `python3`.
    python: str = ""
    #: command: the program and its arguments. It is given TEMPER_ENDPOINT, TEMPER_NAME and
    #: TEMPER_CREDENTIALS in its environment.
    command: list[str] = dataclasses.field(default_factory=list)
    #: Servers: where requests go, one entry per replica, in order: `http://HOST:PORT`. One
    #: entry alone may stand for all replicas: `file:PATH`, whose lines are addresses and which
    #: may appear late, or `dns://NAME:PORT`, a name with an address per server.
    data: list[str] = dataclasses.field(default_factory=list)
    #: Servers: where weights, pauses and versions are spoken of, as in `data`; empty: at the
    #: same addresses. Needed where `data` names a router.
    control: list[str] = dataclasses.field(default_factory=list)
    #: Servers: a shell command that starts one, which is then watched and started again;
    #: `{model}`, `{host}` and `{port}` stand for the folder of the weights and the address.
    #: Empty: they are there.
    start: str = ""
    #: Servers: name of the model in requests; empty: what the server names first.
    served_model: str = ""
    #: Servers: folder that they can read, into which weights are written; empty: one in TMPDIR
    #: of this machine.
    folder: str = ""
    #: Servers: how long one may be away before its actor is given up.
    patience: int = 600000000000
    #: Servers: largest mean distance between the log-probs that the trainer and the server give
    #: the canary, the fixed sequence that is compared at each version. 1e-4 suits float32; 2e-2
    #: suits bfloat16.
    tolerance: float = 0.0001
    #: `openai`: the request that makes a server load new weights, `METHOD /PATH` and, after a
    #: space, its body; `{model}` and `{label}` in it stand for the folder and its name. Empty:
    #: the server is started again with each version.
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
    #: Stands for no token.
    pad: int = 0
    #: Ends a response, and is its last token.
    end: int = 1
    #: Token of the first character.
    first: int = 2
    #: The characters, one token each, from `first` on; empty: the 256 values of a byte.
    alphabet: str = ""
    #: All tokens that end a response, `end` first.
    ends: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Model folder whose tokenizer says what ids mean, in place of `first` and `alphabet`;
    #: empty: they do.
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
    #: Folder of the base model, as Hugging Face keeps one: config.json, weights.
    base_weights: str = ""
    #: Checkpoint folder, or empty.
    resume_from: str = ""
    #: Weights through shared memory.
    shared_memory: bool = True
    #: Version of the weights to start from.
    version: int = 0
    #: Reference: starts on the host.
    takes_turns: bool = False
    #: msgpack map of the role's own settings: of a rollout RolloutSettings, of trainer and
    #: reference TrainerSettings.
    settings: bytes = b""
    #: msgpack of what is simulated; or empty.
    simulation: bytes = b""
    #: Who does the work.
    engine: EngineConfig = dataclasses.field(default_factory=EngineConfig)
    #: What token ids mean.
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)

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
    #: Interval at which both sides show life.
    heartbeat: int = 0
    #: Silence after which a side gives the other up.
    heartbeat_timeout: int = 0
    #: Its slot.
    name: str = ""
    #: Attached: the run.
    run: str = ""
    #: Attached: counts the orchestrators of the run; the one with the highest is it.
    incarnation: int = 0
    #: Attached: the run's clock when this was sent. The worker takes it for its own, in place
    #: of `epoch_monotonic_ns`, which is of another host.
    now: int = 0
    #: Attached: how long it keeps what it has loaded, and looks for a successor, once this
    #: orchestrator is silent.
    grace: int = 0
    #: Attached: after so long a silence of a worker that it has asked for weights it asks the
    #: next.
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
    #: Attached: there is no place now. It is let go if it had one, and may say actor.hello
    #: again, every second.
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
    #: As that one has it.
    sent: int = 0
    #: How long before this one it was heard.
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
    #: When it was sent: a worker's on the run's clock as it has it, the orchestrator's on one
    #: of its own.
    sent: int = 0
    #: Of a worker: the heartbeat that it heard last. From these the orchestrator knows how far
    #: the worker's clock is off.
    answers: HeartbeatAnswer | None = None
    #: Of a worker that does not take work yet: it has used processor time, has read from a
    #: disk, or waits for something under a deadline of its own, since its last heartbeat.
    #: `deadlines.start` counts anew.
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

    #: Bytes in bodies of 64 KiB or more, since the beginning.
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
    #: Over it, of all devices; each byte counts once.
    bytes: int = 0
    #: Of one device, one direction.
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
    #: Most that was held at once.
    peak: int = 0
    #: Most that the ledger had said before the run.
    predicted: int = 0
    #: There is.
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
class Usage:
    #: Of the actor; a device is a die.
    devices: int = 0
    #: Model FLOP done, recompute left out.
    flops: float = 0.0
    #: Dense BF16 peak of one device.
    peak: float = 0.0
    #: Bytes moved, by plane.
    planes: list[PlaneUse] = dataclasses.field(default_factory=list)
    #: Memory of one device.
    device: MemoryUse = dataclasses.field(default_factory=MemoryUse)
    #: Its share of host memory.
    host: MemoryUse = dataclasses.field(default_factory=MemoryUse)

    def pack(self) -> Fields:
        return {
            1: self.devices,
            2: self.flops,
            3: self.peak,
            4: [x.pack() for x in self.planes],
            5: self.device.pack(),
            6: self.host.pack(),
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
    #: Now and then: what it has used since its start.
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
    #: Another start would fail in the same way: a class that is not there, a model folder that
    #: is refused. At the first start of an actor it ends the run.
    permanent: bool = False

    def pack(self) -> Fields:
        return {
            1: self.reason,
            2: self.permanent,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Failed:
        get = fields.get
        return cls(
            get(1, ""),
            get(2, False),
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

    #: Why it goes; nothing comes from it after this.
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
    #: Tokens an interrupted attempt already made.
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
    #: Take the likeliest token each time, whatever `sampling` says.
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
    #: How many tokens, one after the other.
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
class GeneratedItem:
    #: Lease it was dispatched under.
    lease: int = 0
    #: Which response.
    response: int = 0
    #: Token ids sampled by this attempt (no prefix).
    tokens: Int32Array = dataclasses.field(default_factory=no_i4)
    #: Log-prob of each token as sampled.
    logprobs: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Policy version of each run of tokens.
    segments: list[Segment] = dataclasses.field(default_factory=list)
    #: Why it ended.
    finish: FinishReason = FinishReason.END
    #: Per token 1 where the policy sampled it, 0 where it came from elsewhere (a tool, a user's
    #: turn): such a token has log-prob 0 and is not trained; empty: all 1.
    mask: Uint8Array = dataclasses.field(default_factory=no_u1)
    #: Per token, a reward given where it was made (by an environment, at the end of a turn);
    #: empty: none. They are added to what the response is judged to be worth.
    rewards: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Why it failed, where `finish` is `failed`.
    failure: str = ""

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

    #: Responses whose work became void.
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

    #: Responses that go on elsewhere.
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
    #: What else the row of the prompt's file holds, as a JSON object; or empty.
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
    #: Why it could not be judged; empty if it was.
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
    #: The verifier has given no reward since it was started, and failed several times. Ends a
    #: run that has had no reward yet.
    gave_up: bool = False

    def pack(self) -> Fields:
        return {
            1: self.lease,
            2: [x.pack() for x in self.items],
            3: self.gave_up,
        }

    @classmethod
    def unpack(cls, fields: Fields) -> Judged:
        get = fields.get
        return cls(
            get(1, 0),
            [JudgedItem.unpack(x) for x in get(2, ())],
            get(3, False),
        )


@dataclasses.dataclass(slots=True)
class CertificateEntry:
    #: Which group.
    group: int = 0
    #: v0, the version its first token was dispatched with.
    dispatched: int = 0
    #: Version that its age is counted from, where that is not v0: the mean version of its
    #: tokens, rounded down.
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
    #: T, the version being updated.
    step: int = 0
    #: Largest allowed age.
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
    #: Behaviour log-probs as recorded when sampled.
    logprobs: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Reference log-probs; empty without a reference.
    reference: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Reward of the response.
    reward: float = 0.0
    #: Policy version of its first token.
    first_version: int = 0
    #: Policy version of each run of tokens.
    segments: list[Segment] = dataclasses.field(default_factory=list)
    #: As in rollout.generated.
    mask: Uint8Array = dataclasses.field(default_factory=no_u1)
    #: As in rollout.generated.
    rewards: Float32Array = dataclasses.field(default_factory=no_f4)
    #: Which response; errors name it.
    id: int = 0

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
    #: Responses, those of one group together.
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
    #: Share of tokens above its cap.
    capped_fraction: float = 0.0

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
        )


@dataclasses.dataclass(slots=True)
class WeightsHandle:
    #: Policy version of the image.
    version: int = 0
    #: Size of the image: of one safetensors file (of synthetic engines: of any bytes).
    bytes: int = 0
    #: XXH3-64 of the image.
    checksum: int = 0
    #: Process that holds the memfd.
    pid: int = 0
    #: Descriptor in that process; negative: sent as chunks.
    fd: int = -1
    #: A file with the image, on a file system that both sides see; then no chunks are sent.
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
    #: Groups trained on, as the trainer saw them.
    groups: list[int] = dataclasses.field(default_factory=list)
    #: Of this update.
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
    #: Version that is updated.
    step: int = 0
    #: Responses, those of one group together.
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

    #: Version the trainer must be at.
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
    #: Why it could not be saved; empty if it was.
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
    #: Of a worker that said in actor.hello where it passes weights on: other workers that have
    #: the image or are being sent it, to be asked (weights.fetch) in this order, and after them
    #: the orchestrator. Empty: the orchestrator sends it unasked.
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
    #: Position of the piece, in bytes.
    offset: int = 0
    #: XXH3-64 of the piece.
    checksum: int = 0
    #: At most 1 MiB.
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
    #: Why it could not be; empty if it was.
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
    #: Of the whole image, as announced.
    checksum: int = 0
    #: Where the first missing chunk begins, in bytes.
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

    #: Open key of another worker.
    key: str = ""
    #: Whether it may ask; false: it may not any more.
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

    #: Version now in use.
    version: int = 0
    #: Why the switch was refused; empty if it was not.
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

    #: What to do.
    action: SwitchAction = SwitchAction.INTERRUPT
    #: Onloading: the cards that the actor has from now on; empty: all of its own.
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

    #: What was done.
    action: SwitchAction = SwitchAction.INTERRUPT
    #: Time and bytes.
    cost: SwitchCost = dataclasses.field(default_factory=SwitchCost)
    #: Why it could not be done; empty if it was.
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
