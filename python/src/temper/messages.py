"""Every message between a worker and the orchestrator, and what it is made of.

Made by python/tools/generate_messages.py from `temper protocol --json`: not to be edited. What each
means: docs/reference/protocol.md. wire.Struct packs and unpacks them by the annotations.
"""

import dataclasses
import enum
from typing import Annotated, Any, Callable, ClassVar

from .wire import (
    Fields,
    Float32Array,
    Int32Array,
    Struct,
    Uint8Array,
    no_f4,
    no_i4,
    no_u1,
)


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
    AUTO = 2


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
class Piece(Struct):
    #: Position of the frame in the body, in bytes.
    offset: Annotated[int, 1] = 0
    #: Size of the whole body.
    total: Annotated[int, 2] = 0


@dataclasses.dataclass(slots=True)
class Envelope(Struct):
    #: Number of the message type.
    tag: Annotated[int, 1] = 0
    #: Version of the message type, from the sender.
    version: Annotated[int, 2] = 1
    #: Position among the sender's messages, from 1.
    sequence: Annotated[int, 3] = 0
    #: If present, the second frame is a piece of the body.
    piece: Annotated[Piece | None, 4] = None


@dataclasses.dataclass(slots=True)
class LearningRateSchedule(Struct):
    #: Number of first steps in which the learning rate rises in equal parts.
    warm_up_steps: Annotated[int, 1] = 0
    #: How it falls after them: not at all, along a line, or along half a cosine.
    decay: Annotated[Decay, 2] = Decay.NONE
    #: Number of steps of the run after which it is `end`. Null: `steps`.
    decay_steps: Annotated[int | None, 3] = None
    #: Learning rate after the decay, as a share of `algorithm.learning_rate`.
    end: Annotated[float, 4] = 0.0


@dataclasses.dataclass(slots=True)
class CriticConfig(Struct):
    #: Lambda of generalized advantage estimation. 1: return minus value; 0: the temporal
    #: difference of one token.
    gae_lambda: Annotated[float, 1] = 0.95
    #: Discount of the return, per token.
    discount: Annotated[float, 2] = 1.0
    #: Distance from the value before the step beyond which a value has no gradient towards its
    #: return. Null: no limit.
    value_clip: Annotated[float | None, 3] = None
    #: Learning rate of the critic. Null: `algorithm.learning_rate`.
    learning_rate: Annotated[float | None, 4] = None
    #: Number of first steps that train the critic only; the policy does not change.
    warm_up_steps: Annotated[int, 5] = 0
    #: KL in the reward: coefficient of log(sampler / reference) of each token, which is
    #: subtracted from the token's reward. 0: none.
    kl: Annotated[float, 6] = 0.0


@dataclasses.dataclass(slots=True)
class AlgorithmConfig(Struct):
    #: Algorithm: a row of the table in docs/reference/algorithms.md. Keys of this section that
    #: are null take their value from the row.
    name: Annotated[AlgorithmName, 15] = AlgorithmName.GRPO
    #: Prompts (groups) per step.
    groups_per_update: Annotated[int, 1] = 64
    #: Responses per prompt. At least 2 for a real policy without a critic.
    responses_per_group: Annotated[int, 2] = 16
    #: Minibatches per step. The optimizer (AdamW) is applied once per minibatch. Must divide
    #: the number of responses of a step.
    minibatches: Annotated[int, 3] = 4
    #: Lower clip of the importance ratio: 1 - clip_low. From 0 to 1.
    clip_low: Annotated[float | None, 4] = None
    #: Upper clip of the importance ratio: 1 + clip_high. At least 0.
    clip_high: Annotated[float | None, 5] = None
    #: Coefficient of the KL (k3) to the reference in the loss. 0: no KL term, and no reference
    #: needed.
    kl: Annotated[float, 6] = 0.0
    #: Added to the standard deviation of rewards before dividing by it.
    advantage_epsilon: Annotated[float, 7] = 0.0001
    #: Learning rate of AdamW.
    learning_rate: Annotated[float, 8] = 0.0002
    #: How the learning rates of the policy and the critic change during the run.
    learning_rate_schedule: Annotated[LearningRateSchedule, 35] = dataclasses.field(default_factory=LearningRateSchedule)
    #: AdamW: decay rate of the first moment.
    beta1: Annotated[float, 9] = 0.9
    #: AdamW: decay rate of the second moment.
    beta2: Annotated[float, 10] = 0.95
    #: AdamW: added to the denominator.
    adam_epsilon: Annotated[float, 11] = 1e-08
    #: AdamW: decoupled weight decay.
    weight_decay: Annotated[float, 12] = 0.0
    #: Largest global gradient norm; larger gradients are scaled down to it.
    gradient_clip: Annotated[float, 13] = 1.0
    #: Multiply the learning rate of a step by the square root of its `ratio/effective`, so that
    #: a step whose samples are too stale changes the policy less.
    scale_by_effective_samples: Annotated[bool, 32] = False
    #: Tokens per forward and backward pass, padding included. Lower it to save memory; at least
    #: `model.context`.
    micro_batch_tokens: Annotated[int, 14] = 16384
    #: Per-token loss. `clip`: clipped around the behaviour policy; `naive`: clipped around the
    #: proximal policy, without correction for stale samples; `decoupled`, `tis`, `cispo`,
    #: `reinforce`: see docs/reference/algorithms.md.
    objective: Annotated[Objective | None, 16] = None
    #: naive, decoupled, tis: log-probs under the weights before the step. `recomputed`: by one
    #: more forward pass; `interpolated`: between those of the sampler and of the current
    #: weights, by versions (A-3PO).
    proximal: Annotated[Proximal | None, 34] = None
    #: Baseline that is subtracted from a reward: nothing, the mean of the group or of the
    #: batch, or the mean of the other responses of the group. `critic`: the values of a second
    #: network, for an advantage per token (GAE).
    advantage_mean: Annotated[AdvantageMean | None, 17] = None
    #: Standard deviation of rewards by which advantages are divided: none, of the group or of
    #: the batch. With a critic, `batch` whitens the advantages of all tokens of the batch.
    advantage_std: Annotated[AdvantageStd | None, 18] = None
    #: Level of the importance ratio: per token, or the geometric mean over the response.
    ratio: Annotated[RatioLevel | None, 19] = None
    #: How token losses are averaged. `token`: over all tokens; `sequence`: over each response
    #: first, then over responses; `constant`: sum divided by responses times
    #: `sampling.max_new_tokens`.
    average: Annotated[Averaging | None, 20] = None
    #: decoupled, tis: smallest behaviour weight. From 0 (none) to 1.
    behaviour_weight_floor: Annotated[float | None, 28] = None
    #: decoupled, tis: largest behaviour weight, the ratio of proximal to behaviour probability.
    #: At least 1.
    behaviour_weight_cap: Annotated[float | None, 21] = None
    #: decoupled: treatment of a weight below the floor or above the cap. `clamp`: the nearer of
    #: them is used; `mask`: its tokens are left out of the loss.
    behaviour_weight_mode: Annotated[WeightMode | None, 22] = None
    #: decoupled, tis: `token`: a weight per token; `geometric`: one per response, the geometric
    #: mean of its token ratios; `sequence`: one per response, their product. Null: that of the
    #: row, or `geometric` with `ratio: sequence`.
    behaviour_weight_level: Annotated[WeightLevel | None, 29] = None
    #: On-policy distillation: weight of log(teacher / sampler) of each sampled token, its
    #: negative reverse KL, in the token's advantage. The teacher is the reference
    #: (`reference.model`). 0: none.
    distillation: Annotated[float | None, 30] = None
    #: Most likely tokens of the teacher at each token, as many as this. The loss is then
    #: `distillation` times the reverse KL to the teacher over these tokens and all others
    #: together, in place of the sampled token's advantage. 0: the sampled token.
    distillation_top_k: Annotated[int, 36] = 0
    #: Weight of the advantage from the reward beside `distillation`. 0: rewards are judged and
    #: reported only.
    reward_weight: Annotated[float | None, 31] = None
    #: Replace a judged group whose rewards are all equal by a new one, because its advantages
    #: are 0 (dynamic sampling).
    filter_equal_rewards: Annotated[bool | None, 23] = None
    #: Limit of filtered groups per step, as a multiple of `groups_per_update`. Beyond it such
    #: groups are trained, so that a run ends even if the policy solves every prompt.
    filter_limit: Annotated[float, 24] = 16.0
    #: Limit of failed groups per step, as a multiple of `groups_per_update`, but at least 16
    #: groups. One more ends the run with the reason of the last failure.
    failure_limit: Annotated[float, 27] = 8.0
    #: Soft length penalty: over the last this many tokens before `sampling.max_new_tokens`, the
    #: reward decreases linearly by up to `overlong_penalty`. 0: no penalty.
    overlong_buffer: Annotated[int | None, 25] = None
    #: Amount subtracted from the reward of a response of full length.
    overlong_penalty: Annotated[float, 26] = 1.0
    #: The critic of `advantage_mean: critic`: a second network of the policy's shape, trained
    #: beside it.
    critic: Annotated[CriticConfig, 33] = dataclasses.field(default_factory=CriticConfig)


@dataclasses.dataclass(slots=True)
class TrainerSettings(Struct):
    #: Advantages, loss and optimizer.
    algorithm: Annotated[AlgorithmConfig, 1] = dataclasses.field(default_factory=AlgorithmConfig)
    #: Sampling temperature; log-probs are computed at it.
    temperature: Annotated[float, 2] = 1.0
    #: Synthetic: time of a training step.
    synthetic_step: Annotated[int, 3] = 0
    #: Synthetic: size of the weights of a version.
    synthetic_weights: Annotated[int, 5] = 0
    #: Largest response length, in tokens (`sampling.max_new_tokens`).
    longest_response: Annotated[int, 4] = 1


@dataclasses.dataclass(slots=True)
class SamplingConfig(Struct):
    #: Divides the logits. Recorded log-probs are those of the resulting distribution.
    temperature: Annotated[float, 1] = 1.0
    #: Nucleus sampling: sample from the smallest set of tokens with this total probability.
    top_p: Annotated[float, 2] = 1.0
    #: Largest response length, in tokens.
    max_new_tokens: Annotated[int, 3] = 8


@dataclasses.dataclass(slots=True)
class AgentConfig(Struct):
    #: Program and arguments, started for each engine (docs/how-to/agents.md). Empty: no agent;
    #: every response has one turn.
    command: Annotated[list[str], 1] = dataclasses.field(default_factory=list)
    #: Agent processes per engine. Each plays many episodes at once.
    processes: Annotated[int, 2] = 1
    #: Largest number of requests per episode.
    turns: Annotated[int, 3] = 16
    #: Time limit of one episode. An episode that exceeds it fails.
    deadline: Annotated[int, 4] = 120000000000
    #: Environment variables to pass to the program, in addition to those that every program
    #: receives (`verifier.environment`).
    environment: Annotated[list[str], 5] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class RolloutSettings(Struct):
    #: How responses are sampled.
    sampling: Annotated[SamplingConfig, 1] = dataclasses.field(default_factory=SamplingConfig)
    #: Largest number of responses in flight.
    concurrency: Annotated[int, 2] = 128
    #: Synthetic: length of every response.
    synthetic_tokens: Annotated[int, 3] = 256
    #: Synthetic: time of a decode step.
    synthetic_step: Annotated[int, 4] = 0
    #: What happens to running responses when the weights change.
    on_new_weights: Annotated[OnNewWeights, 10] = OnNewWeights.KEEP_KV
    #: Whether the most urgent request enters the batch first.
    deadline_first: Annotated[bool, 11] = False
    #: Program that plays multi-turn episodes.
    agent: Annotated[AgentConfig, 12] = dataclasses.field(default_factory=AgentConfig)


@dataclasses.dataclass(slots=True)
class RelayAddress(Struct):
    #: Where it listens; empty: it does not relay.
    endpoint: Annotated[str, 1] = ""
    #: Its CURVE public key, which it also uses when it fetches from others, in ZeroMQ's text
    #: form.
    key: Annotated[str, 2] = ""


@dataclasses.dataclass(slots=True)
class Hello(Struct):
    """`actor.hello`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.hello"
    TAG: ClassVar[int] = 1
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Protocol version; must equal the orchestrator's.
    protocol: Annotated[int, 1] = 2
    #: Actor slot, e.g. `rollout-0`. Attached: also a role (`rollout`: any free slot of it),
    #: `any` (any free slot), or `#` and a rank (the attached slot with this number, from 0, or
    #: any free one).
    name: Annotated[str, 2] = ""
    #: Launch secret of the run.
    secret: Annotated[str, 3] = ""
    #: Process id on its host.
    pid: Annotated[int, 4] = 0
    #: Host name.
    host: Annotated[str, 5] = ""
    #: True if the orchestrator did not start this worker.
    attached: Annotated[bool, 6] = False
    #: Attached: its previous slot, which it gets again if it is free.
    was: Annotated[str, 7] = ""
    #: Attached: the run of its key.
    run: Annotated[str, 8] = ""
    #: Attached: incarnation of the orchestrator that it last served; 0: none.
    incarnation: Annotated[int, 9] = 0
    #: Attached: where other workers can fetch weights from it.
    relay: Annotated[RelayAddress, 10] = dataclasses.field(default_factory=RelayAddress)


@dataclasses.dataclass(slots=True)
class RopeScaling(Struct):
    #: Slow rotary angles are slowed down by this factor.
    factor: Annotated[float, 1] = 8.0
    #: An angle is slow if it turns at most this often within `original_context`.
    low_freq_factor: Annotated[float, 2] = 1.0
    #: An angle that turns at least this often is unchanged; must exceed `low_freq_factor`.
    #: Angles in between are interpolated.
    high_freq_factor: Annotated[float, 3] = 4.0
    #: original_max_position_embeddings, in tokens.
    original_context: Annotated[int, 4] = 8192


@dataclasses.dataclass(slots=True)
class LoraConfig(Struct):
    #: Rows of A and columns of B; at most the smaller side of every target.
    rank: Annotated[int, 1] = 16
    #: The adapter's output is scaled by alpha / rank.
    alpha: Annotated[float, 2] = 32.0
    #: Linear layers with an adapter, in every block: `q_proj`, `k_proj`, `v_proj`, `o_proj`,
    #: `gate_proj`, `up_proj` and `down_proj`.
    targets: Annotated[list[str], 3] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class ModelConfig(Struct):
    #: Width of the residual stream.
    hidden: Annotated[int, 1] = 64
    #: Number of transformer blocks.
    layers: Annotated[int, 2] = 2
    #: Query heads.
    heads: Annotated[int, 3] = 4
    #: Key and value heads; must divide `heads`.
    kv_heads: Annotated[int, 4] = 2
    #: Inner width of the SwiGLU layer.
    ffn: Annotated[int, 5] = 192
    #: Longest prompt plus response, in tokens. With `path`: at most, and by default, the
    #: folder's max_position_embeddings.
    context: Annotated[int, 6] = 32
    #: Base of the rotary angles.
    rope_base: Annotated[float, 7] = 10000.0
    #: Architecture, named as in config.json.
    architecture: Annotated[Architecture, 8] = Architecture.LLAMAFORCAUSALLM
    #: Width of a head, an even number; default: hidden / heads.
    head_dim: Annotated[int | None, 9] = None
    #: Added to the mean square of a norm.
    norm_epsilon: Annotated[float, 10] = 1e-06
    #: Whether the output head shares the weights of the embedding.
    tie_embeddings: Annotated[bool, 11] = False
    #: Rows of the embedding; default: number of tokens of the task's tokenizer.
    vocabulary: Annotated[int | None, 12] = None
    #: Folder of a Hugging Face model, a GGUF file (or a folder with one), or `smollm2`:
    #: SmolLM2-135M-Instruct, which is downloaded once. The run starts from its weights without
    #: pretraining, and all other keys of this section except `context`, `ignore`,
    #: `compute_dtype` and `lora` are read from its config.json. Empty: the base model is
    #: pretrained.
    path: Annotated[str, 13] = ""
    #: End-of-response tokens. Empty: with `path`, the eos_token_id of its
    #: generation_config.json or config.json; otherwise that of the task's tokenizer.
    end_tokens: Annotated[Int32Array, 14] = dataclasses.field(default_factory=no_i4)
    #: The `llama3` scaling of rotary angles; null: none.
    rope_scaling: Annotated[RopeScaling | None, 15] = None
    #: With `path`: unknown keys of its config.json that do not change what the network
    #: computes. The run prints a warning for each ignored key.
    ignore: Annotated[list[str], 16] = dataclasses.field(default_factory=list)
    #: Operands of matrix products in Temper's own engines, and matrices of the weights that are
    #: published. The trainer keeps weights, gradients and optimizer in float32. `bfloat16` is
    #: faster on CPUs with AVX512-BF16 or AMX; `auto` is `bfloat16` if the orchestrator's host
    #: has such a CPU, else `float32`.
    compute_dtype: Annotated[ComputeType, 17] = ComputeType.FLOAT32
    #: Train and publish low-rank adapters only; the weights of the base stay as they are. null:
    #: train all weights (docs/how-to/lora.md).
    lora: Annotated[LoraConfig | None, 18] = None


@dataclasses.dataclass(slots=True)
class TaskSource(Struct):
    #: jsonl: path of the file, in the format of `task.path`.
    path: Annotated[str, 1] = ""
    #: addition: digits of each summand, from 1 to 9. Null: `task.digits`.
    digits: Annotated[int | None, 2] = None
    #: Groups of this source in proportion to those of the others.
    weight: Annotated[float, 3] = 1.0
    #: Weights by step in place of `weight`: linear between two steps, constant before the first
    #: and after the last.
    schedule: Annotated[dict[int, float], 4] = dataclasses.field(default_factory=dict)
    #: Key of `reference.teachers`: who scores the responses to its problems.
    teacher: Annotated[str, 5] = ""


@dataclasses.dataclass(slots=True)
class SetAside(Struct):
    #: Set a problem aside if at least this share of the responses of its last group passed
    #: (`evaluation.pass`). From 0 to 1. Null: never.
    easy: Annotated[float | None, 1] = None
    #: Set a problem aside if at most this share of the responses of its last group passed. From
    #: 0 to 1. Null: never.
    hopeless: Annotated[float | None, 2] = None
    #: Epochs of its source for which a problem is left out; then it is tried again.
    for_epochs: Annotated[int, 3] = 1


@dataclasses.dataclass(slots=True)
class TaskConfig(Struct):
    #: `addition` (built in) or `jsonl` (a file of prompts).
    kind: Annotated[TaskKind, 1] = TaskKind.ADDITION
    #: addition: digits of each summand.
    digits: Annotated[int, 2] = 3
    #: addition: write the answer least significant digit first, which a small model learns much
    #: faster.
    reverse_answer: Annotated[bool, 3] = True
    #: Share of the problems kept out of training, for `evaluation`.
    held_out: Annotated[float, 4] = 0.1
    #: jsonl: path of the file; each line has `prompt` and `answer`, or `question` and `answer`.
    path: Annotated[str, 5] = ""
    #: `auto` means `characters` for addition and `bytes` for jsonl.
    tokenizer: Annotated[TokenizerKind, 6] = TokenizerKind.AUTO
    #: jsonl: `none`: prompts are texts that the engine gets unchanged. `chat`: prompts are
    #: texts or messages, rendered with the chat template of `model.path` (needs Python with
    #: jinja2).
    template: Annotated[TemplateKind, 7] = TemplateKind.NONE
    #: Several sources of problems by name, each with a weight. The column `source` of a problem
    #: has the name. Empty: one source, by the keys above.
    sources: Annotated[dict[str, TaskSource], 8] = dataclasses.field(default_factory=dict)
    #: Visit the problems of a source in another order in every epoch. False: in the order of
    #: the file.
    shuffle: Annotated[bool, 9] = True
    #: Problems that are left out for some epochs.
    set_aside: Annotated[SetAside, 10] = dataclasses.field(default_factory=SetAside)
    #: jsonl: column that has the key of `reference.teachers` who scores the responses to the
    #: problem. Empty: `teacher` of each source, or one teacher.
    teacher_column: Annotated[str, 11] = ""


@dataclasses.dataclass(slots=True)
class JudgeConfig(Struct):
    #: Base address of the API, as OpenAI clients take it; requests go to
    #: `URL/chat/completions`.
    url: Annotated[str, 1] = ""
    #: Model name in requests.
    model: Annotated[str, 2] = ""
    #: Name of the environment variable with the API key; empty: none is sent. The key is
    #: written nowhere.
    key_variable: Annotated[str, 3] = ""
    #: The question. `{prompt}`, `{response}`, `{answer}` and the name of any column of the row
    #: in braces are replaced by their text; other braces stay.
    prompt: Annotated[str, 4] = ""
    #: The system message; empty: none.
    system: Annotated[str, 5] = ""
    #: Regular expression of Python; its first group, or the whole of its last match in the
    #: reply, is the score. Either this or `field`.
    pattern: Annotated[str, 6] = ""
    #: Key of the score in the last JSON object of the reply.
    field: Annotated[str, 7] = ""
    #: Score that becomes reward 0.
    lowest: Annotated[float, 8] = 0.0
    #: Score that becomes reward 1; a reply with a score outside the range is invalid.
    highest: Annotated[float, 9] = 1.0
    #: Sampling temperature. Null: the request has none, and the server uses its own.
    temperature: Annotated[float | None, 10] = 0.0
    #: Longest reply, in tokens. Null: the request has no such limit.
    max_tokens: Annotated[int | None, 11] = 1024
    #: Requests for one response within `deadline`, if the first ones fail: no connection,
    #: status 408, 429 or 5xx, or a reply without a valid score.
    attempts: Annotated[int, 12] = 4
    #: Number of scores that are kept, so that equal questions are asked once.
    cache: Annotated[int, 13] = 100000
    #: Price of a million input tokens, for `judge/cost`.
    input_price: Annotated[float, 14] = 0.0
    #: Price of a million output tokens.
    output_price: Annotated[float, 15] = 0.0
    #: JSON object with further fields of a request, as `extra_body` of OpenAI's client.
    extra_body: Annotated[str, 16] = ""


@dataclasses.dataclass(slots=True)
class ClassifierConfig(Struct):
    #: Folder of a model that AutoModelForSequenceClassification loads.
    path: Annotated[str, 1] = ""
    #: Class whose probability is the reward. Empty: the model has one output, which is the
    #: reward.
    label: Annotated[str, 2] = ""
    #: Input of the classifier; names in braces as in `judge.prompt`.
    text: Annotated[str, 3] = "{prompt}{response}"
    #: `none`: the input is `text`. `chat`: it is the conversation, the row's `messages` or the
    #: prompt and then the response, rendered by the chat template of the folder.
    template: Annotated[TemplateKind, 4] = TemplateKind.NONE
    #: `cpu`, `cuda` or `cuda:1`; empty: a GPU if there is one.
    device: Annotated[str, 5] = ""
    #: Responses of one forward pass.
    batch: Annotated[int, 6] = 32


@dataclasses.dataclass(slots=True)
class VerifierTerm(Struct):
    #: How responses are judged. `exact`: the response equals the answer; `numeric`: its last
    #: number equals that of the answer; `regex`: it matches a pattern; `command`: your program
    #: says so; `python`: your function in Python says so; `judge`: a language model behind an
    #: OpenAI-compatible address gives a score; `model`: a sequence classifier of transformers
    #: gives the reward; `sum`: the weighted sum of `terms`.
    kind: Annotated[VerifierKind, 1] = VerifierKind.EXACT
    #: numeric: largest accepted difference from the answer.
    tolerance: Annotated[float, 2] = 1e-06
    #: regex: ECMAScript pattern that must match in the response; `{answer}` is replaced by the
    #: escaped answer.
    pattern: Annotated[str, 3] = ""
    #: command: executable and arguments; reads and writes one JSON line per response.
    command: Annotated[list[str], 4] = dataclasses.field(default_factory=list)
    #: command, python: number of processes. judge: requests at the same time.
    pool: Annotated[int, 5] = 2
    #: command: time limit for one response; after it the process is replaced and the response
    #: counts as failed. python: the same for one call with its responses. judge: time limit for
    #: one response with all attempts.
    deadline: Annotated[int, 6] = 5000000000
    #: command: restrictions on the program. `none`: no restrictions. `limits`: bounded memory,
    #: files and descriptors, no new privileges. `namespaces`: `limits`, and no network, no
    #: other processes visible, read-only file systems, an empty private /tmp.
    sandbox: Annotated[SandboxKind, 7] = SandboxKind.LIMITS
    #: command: memory limit of the program and everything it starts, unless `sandbox: none`.
    memory: Annotated[int, 8] = 8589934592
    #: command: environment variables passed to the program in addition to PATH, HOME, USER,
    #: LANG, LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS.
    environment: Annotated[list[str], 9] = dataclasses.field(default_factory=list)
    #: command, `sandbox: namespaces`: folders that appear empty to the program.
    hidden: Annotated[list[str], 10] = dataclasses.field(default_factory=list)
    #: python: module and function, called like a reward function of TRL: f(prompts,
    #: completions, completion_ids, **columns) returns a list of numbers.
    function: Annotated[str, 11] = ""
    #: judge: the language model and its question.
    judge: Annotated[JudgeConfig, 13] = dataclasses.field(default_factory=JudgeConfig)
    #: model: the classifier.
    model: Annotated[ClassifierConfig, 14] = dataclasses.field(default_factory=ClassifierConfig)
    #: Factor of its reward in the sum; 0: the reward is shown, but not counted.
    weight: Annotated[float, 15] = 1.0


@dataclasses.dataclass(slots=True)
class VerifierConfig(Struct):
    #: How responses are judged. `exact`: the response equals the answer; `numeric`: its last
    #: number equals that of the answer; `regex`: it matches a pattern; `command`: your program
    #: says so; `python`: your function in Python says so; `judge`: a language model behind an
    #: OpenAI-compatible address gives a score; `model`: a sequence classifier of transformers
    #: gives the reward; `sum`: the weighted sum of `terms`.
    kind: Annotated[VerifierKind, 1] = VerifierKind.EXACT
    #: numeric: largest accepted difference from the answer.
    tolerance: Annotated[float, 2] = 1e-06
    #: regex: ECMAScript pattern that must match in the response; `{answer}` is replaced by the
    #: escaped answer.
    pattern: Annotated[str, 3] = ""
    #: command: executable and arguments; reads and writes one JSON line per response.
    command: Annotated[list[str], 4] = dataclasses.field(default_factory=list)
    #: command, python: number of processes. judge: requests at the same time.
    pool: Annotated[int, 5] = 2
    #: command: time limit for one response; after it the process is replaced and the response
    #: counts as failed. python: the same for one call with its responses. judge: time limit for
    #: one response with all attempts.
    deadline: Annotated[int, 6] = 5000000000
    #: command: restrictions on the program. `none`: no restrictions. `limits`: bounded memory,
    #: files and descriptors, no new privileges. `namespaces`: `limits`, and no network, no
    #: other processes visible, read-only file systems, an empty private /tmp.
    sandbox: Annotated[SandboxKind, 7] = SandboxKind.LIMITS
    #: command: memory limit of the program and everything it starts, unless `sandbox: none`.
    memory: Annotated[int, 8] = 8589934592
    #: command: environment variables passed to the program in addition to PATH, HOME, USER,
    #: LANG, LC_ALL, LC_CTYPE, TZ, TMPDIR and OMP_NUM_THREADS.
    environment: Annotated[list[str], 9] = dataclasses.field(default_factory=list)
    #: command, `sandbox: namespaces`: folders that appear empty to the program.
    hidden: Annotated[list[str], 10] = dataclasses.field(default_factory=list)
    #: python: module and function, called like a reward function of TRL: f(prompts,
    #: completions, completion_ids, **columns) returns a list of numbers.
    function: Annotated[str, 11] = ""
    #: judge: the language model and its question.
    judge: Annotated[JudgeConfig, 13] = dataclasses.field(default_factory=JudgeConfig)
    #: model: the classifier.
    model: Annotated[ClassifierConfig, 14] = dataclasses.field(default_factory=ClassifierConfig)
    #: python: several functions, each with the weight of its reward in the sum; short for
    #: `kind: sum`.
    functions: Annotated[dict[str, float], 12] = dataclasses.field(default_factory=dict)
    #: sum: the verifiers by name, each with the keys of this section except `functions` and
    #: `terms`, and `weight`.
    terms: Annotated[dict[str, VerifierTerm], 16] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class EngineConfig(Struct):
    #: `native`: the built-in engine; `python`: a Python class of yours; `command`: a program
    #: that speaks the protocol (docs/how-to/write-a-role.md); `vllm`, `sglang`, `openai`,
    #: `llamacpp`: servers (docs/how-to/servers.md).
    kind: Annotated[EngineKind, 1] = EngineKind.NATIVE
    #: python: module and class.
    use: Annotated[str, 2] = ""
    #: python: keyword arguments of the class; values that parse as JSON (a number, `true`, a
    #: list) are passed as such, others as text.
    with_: Annotated[dict[str, str], 3] = dataclasses.field(default_factory=dict)
    #: python: interpreter that has the package `temper`; empty: the environment variable
    #: TEMPER_PYTHON, otherwise `python3`.
    python: Annotated[str, 4] = ""
    #: command: program and arguments. Its environment has TEMPER_ENDPOINT, TEMPER_NAME and
    #: TEMPER_CREDENTIALS.
    command: Annotated[list[str], 5] = dataclasses.field(default_factory=list)
    #: Servers: addresses for requests, one entry per replica, in order: `http://HOST:PORT`. A
    #: single entry can stand for all replicas: `file:PATH`, a file with one address per line
    #: that may appear later, or `dns://NAME:PORT`, a name that resolves to one address per
    #: server.
    data: Annotated[list[str], 6] = dataclasses.field(default_factory=list)
    #: Servers: addresses for control requests (weights, pauses, versions), as in `data`; empty:
    #: the same addresses. Required if `data` names a router.
    control: Annotated[list[str], 7] = dataclasses.field(default_factory=list)
    #: Servers: shell command that starts a server. Temper supervises and restarts it.
    #: `{model}`, `{host}` and `{port}` are replaced by the weights folder and the address.
    #: Empty: the servers already run.
    start: Annotated[str, 8] = ""
    #: Servers: model name in requests; empty: the first model that the server lists.
    served_model: Annotated[str, 9] = ""
    #: Servers: folder into which weights are written and which the servers can read; empty: a
    #: folder in TMPDIR of this machine.
    folder: Annotated[str, 10] = ""
    #: Servers: how long a server may be unavailable before its actor fails.
    patience: Annotated[int, 11] = 600000000000
    #: Servers: largest mean difference between the log-probs that the trainer and the server
    #: compute for the canary, a fixed sequence that is compared for each version. Use 1e-4 for
    #: float32 and 2e-2 for bfloat16.
    tolerance: Annotated[float, 12] = 0.0001
    #: `openai`: request that makes a server load new weights: `METHOD /PATH` and, after a
    #: space, the body; `{model}` and `{label}` are replaced by the folder and its name. Empty:
    #: the server is restarted for each version.
    reload: Annotated[str, 13] = ""


@dataclasses.dataclass(slots=True)
class Vocabulary(Struct):
    #: Token ids are 0 to size - 1.
    size: Annotated[int, 1] = 0
    #: Padding token.
    pad: Annotated[int, 2] = 0
    #: Token that ends a response; it is the response's last token.
    end: Annotated[int, 3] = 1
    #: Token of the first character.
    first: Annotated[int, 4] = 2
    #: The characters, one token each, starting at `first`; empty: the 256 byte values.
    alphabet: Annotated[str, 5] = ""
    #: All tokens that end a response, `end` first.
    ends: Annotated[Int32Array, 6] = dataclasses.field(default_factory=no_i4)
    #: Model folder whose tokenizer defines the token ids, instead of `first` and `alphabet`;
    #: empty: these define them.
    folder: Annotated[str, 7] = ""


@dataclasses.dataclass(slots=True)
class TensorServer(Struct):
    #: Host.
    host: Annotated[str, 1] = ""
    #: Port.
    port: Annotated[int, 2] = 0


@dataclasses.dataclass(slots=True)
class TensorPlace(Struct):
    #: Folder in shared memory, for files. Without it and without `servers`, responses may have
    #: no tensors.
    folder: Annotated[str, 1] = ""
    #: Redis servers; empty: none. A key is on server number XXH3-64(key) modulo their number.
    servers: Annotated[list[TensorServer], 10] = dataclasses.field(default_factory=list)
    #: Password of the servers; empty: none.
    password: Annotated[str, 4] = ""
    #: Beginning of all keys of the run.
    prefix: Annotated[str, 5] = ""
    #: An engine writes a key with this time to live; the orchestrator extends it until the
    #: response was trained.
    lease: Annotated[int, 6] = 0
    #: How long an engine waits for space, and an engine or a trainer for a server that does not
    #: answer.
    wait: Annotated[int, 7] = 0
    #: The servers are reached through TLS. A worker verifies the certificate of each and that
    #: it is for its `host`.
    tls: Annotated[bool, 8] = False
    #: CA certificates in PEM that the worker trusts besides those of its system.
    ca_certificates: Annotated[str, 9] = ""


@dataclasses.dataclass(slots=True)
class RoleConfig(Struct):
    #: Role.
    kind: Annotated[RoleKind, 1] = RoleKind.ROLLOUT
    #: Engine family.
    policy: Annotated[PolicyKind, 2] = PolicyKind.TORCH
    #: Cards (cores) to pin to.
    cards: Annotated[list[int], 3] = dataclasses.field(default_factory=list)
    #: Seed of the run.
    seed: Annotated[int, 4] = 0
    #: Shape of the policy.
    model: Annotated[ModelConfig, 5] = dataclasses.field(default_factory=ModelConfig)
    #: Task.
    task: Annotated[TaskConfig, 6] = dataclasses.field(default_factory=TaskConfig)
    #: Verifier.
    verifier: Annotated[VerifierConfig, 7] = dataclasses.field(default_factory=VerifierConfig)
    #: Hugging Face folder of the base model: config.json and weights.
    base_weights: Annotated[str, 8] = ""
    #: Checkpoint folder, or empty.
    resume_from: Annotated[str, 9] = ""
    #: True: weights travel through shared memory.
    shared_memory: Annotated[bool, 10] = True
    #: Version of the initial weights.
    version: Annotated[int, 12] = 0
    #: Reference: time-shares its cards, so it starts on the host.
    takes_turns: Annotated[bool, 14] = False
    #: msgpack map of the role's own settings: RolloutSettings for rollout, TrainerSettings for
    #: trainer and reference.
    settings: Annotated[bytes, 15] = b""
    #: msgpack of the simulation settings; empty on real hardware.
    simulation: Annotated[bytes, 16] = b""
    #: Engine that does the work.
    engine: Annotated[EngineConfig, 17] = dataclasses.field(default_factory=EngineConfig)
    #: Meaning of the token ids.
    vocabulary: Annotated[Vocabulary, 18] = dataclasses.field(default_factory=Vocabulary)
    #: Rollout and trainer: where tensors of responses are.
    tensors: Annotated[TensorPlace, 20] = dataclasses.field(default_factory=TensorPlace)
    #: Trainer whose worker relays weights: it may announce images as `on_request`.
    serves_weights: Annotated[bool, 21] = False


@dataclasses.dataclass(slots=True)
class Welcome(Struct):
    """`actor.welcome`, orchestrator to worker."""

    NAME: ClassVar[str] = "actor.welcome"
    TAG: ClassVar[int] = 2
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Its id in this run.
    actor: Annotated[int, 1] = 0
    #: Role, cards and engine settings.
    role: Annotated[RoleConfig, 2] = dataclasses.field(default_factory=RoleConfig)
    #: Time zero of the run (CLOCK_MONOTONIC).
    epoch_monotonic_ns: Annotated[int, 3] = 0
    #: Interval at which both sides send heartbeats.
    heartbeat: Annotated[int, 4] = 0
    #: Silence after which a side considers the other lost.
    heartbeat_timeout: Annotated[int, 5] = 0
    #: Its slot.
    name: Annotated[str, 6] = ""
    #: Attached: the run.
    run: Annotated[str, 7] = ""
    #: Attached: number of this orchestrator of the run; the highest number is the current one.
    incarnation: Annotated[int, 8] = 0
    #: Attached: the run's clock when this was sent. The worker uses it as its own clock instead
    #: of `epoch_monotonic_ns`, which is valid on another host only.
    now: Annotated[int, 9] = 0
    #: Attached: how long it keeps its loaded state and looks for a new orchestrator once this
    #: orchestrator is silent.
    grace: Annotated[int, 10] = 0
    #: Attached: how long a worker that was asked for weights may be silent before the next one
    #: is asked.
    relay_timeout: Annotated[int, 11] = 0


@dataclasses.dataclass(slots=True)
class Reject(Struct):
    """`actor.reject`, orchestrator to worker."""

    NAME: ClassVar[str] = "actor.reject"
    TAG: ClassVar[int] = 3
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Why, and what to do.
    reason: Annotated[str, 1] = ""
    #: Attached: there is no free place now. The worker loses its place if it had one, and may
    #: send actor.hello again every second.
    again: Annotated[bool, 2] = False


@dataclasses.dataclass(slots=True)
class Ready(Struct):
    """`actor.ready`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.ready"
    TAG: ClassVar[int] = 4
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1


@dataclasses.dataclass(slots=True)
class HeartbeatAnswer(Struct):
    #: The `sent` of that heartbeat.
    sent: Annotated[int, 1] = 0
    #: Time between its arrival and this heartbeat.
    held: Annotated[int, 2] = 0


@dataclasses.dataclass(slots=True)
class Heartbeat(Struct):
    """`actor.heartbeat`, both ways."""

    NAME: ClassVar[str] = "actor.heartbeat"
    TAG: ClassVar[int] = 5
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Resident memory of the process.
    resident: Annotated[int, 1] = 0
    #: When it was sent. From a worker: on its copy of the run's clock; from the orchestrator:
    #: on a clock of its own.
    sent: Annotated[int, 2] = 0
    #: From a worker: the heartbeat that it received last. The orchestrator uses it to compute
    #: the offset of the worker's clock.
    answers: Annotated[HeartbeatAnswer | None, 3] = None
    #: From a worker that is not ready yet: since its last heartbeat it has used processor time,
    #: read from a disk, or waited for something under a deadline of its own. This restarts
    #: `deadlines.start`.
    loading: Annotated[bool, 4] = False


@dataclasses.dataclass(slots=True)
class Taken(Struct):
    """`actor.taken`, both ways."""

    NAME: ClassVar[str] = "actor.taken"
    TAG: ClassVar[int] = 9
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Bytes received so far in bodies of 64 KiB or more.
    bytes: Annotated[int, 1] = 0


@dataclasses.dataclass(slots=True)
class Span(Struct):
    #: State of the actor's cards.
    state: Annotated[CardState, 1] = CardState.IDLE
    #: Start, on the run's clock.
    begin: Annotated[int, 2] = 0
    #: End, on the run's clock.
    end: Annotated[int, 3] = 0


@dataclasses.dataclass(slots=True)
class PlaneUse(Struct):
    #: Name of the level, `to host` or `from host`.
    plane: Annotated[str, 1] = ""
    #: Bytes moved by all devices; each byte counts once.
    bytes: Annotated[int, 2] = 0
    #: Bandwidth of one device in one direction.
    bandwidth: Annotated[float, 3] = 0.0


@dataclasses.dataclass(slots=True)
class MemoryUse(Struct):
    #: Highest usage.
    peak: Annotated[int, 1] = 0
    #: Highest usage predicted by the memory ledger before the run.
    predicted: Annotated[int, 2] = 0
    #: Available memory.
    capacity: Annotated[int, 3] = 0


@dataclasses.dataclass(slots=True)
class EngineUse(Struct):
    #: Devices that only prefill; 0: all devices prefill and decode.
    prefill_devices: Annotated[int, 1] = 0
    #: Time in which those devices prefilled and sent caches, or of prefill steps in which no
    #: response decoded.
    prefill: Annotated[int, 2] = 0
    #: Time in which responses decoded.
    decode: Annotated[int, 3] = 0
    #: Tokens that a response would have if it had decoded all that time.
    decode_tokens: Annotated[int, 4] = 0


@dataclasses.dataclass(slots=True)
class TensorUse(Struct):
    #: Written to the engine's hosts.
    stored: Annotated[int, 1] = 0
    #: Of these, bytes of responses that were not trained.
    dropped: Annotated[int, 2] = 0
    #: Of these, bytes that are still there.
    held: Annotated[int, 3] = 0
    #: Read by the trainer.
    fetched: Annotated[int, 4] = 0
    #: Time in which the trainer waited for them.
    fetching: Annotated[int, 5] = 0


@dataclasses.dataclass(slots=True)
class Usage(Struct):
    #: Devices of the actor; a device is a die.
    devices: Annotated[int, 1] = 0
    #: Model FLOP performed, without recomputation.
    flops: Annotated[float, 2] = 0.0
    #: Dense BF16 peak of one device.
    peak: Annotated[float, 3] = 0.0
    #: Bytes moved, by plane.
    planes: Annotated[list[PlaneUse], 4] = dataclasses.field(default_factory=list)
    #: Memory of one device.
    device: Annotated[MemoryUse, 5] = dataclasses.field(default_factory=MemoryUse)
    #: Its share of host memory.
    host: Annotated[MemoryUse, 6] = dataclasses.field(default_factory=MemoryUse)
    #: Of a rollout engine.
    engine: Annotated[EngineUse | None, 7] = None
    #: Tensors of responses, if they have any.
    tensors: Annotated[TensorUse | None, 8] = None


@dataclasses.dataclass(slots=True)
class Activity(Struct):
    """`actor.activity`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.activity"
    TAG: ClassVar[int] = 6
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Busy spans since the last report, in order.
    spans: Annotated[list[Span], 1] = dataclasses.field(default_factory=list)
    #: Sent occasionally: cumulative usage since the actor started.
    usage: Annotated[Usage | None, 2] = None


@dataclasses.dataclass(slots=True)
class Failed(Struct):
    """`actor.failed`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.failed"
    TAG: ClassVar[int] = 7
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: What failed.
    reason: Annotated[str, 1] = ""
    #: A restart would fail in the same way: a missing class, a rejected model folder. At the
    #: first start of an actor this ends the run.
    permanent: Annotated[bool, 2] = False
    #: A loss, gradient, weight or logit was infinite or NaN. This raises the alarm
    #: `not_finite`.
    not_finite: Annotated[bool, 3] = False


@dataclasses.dataclass(slots=True)
class Stop(Struct):
    """`actor.stop`, orchestrator to worker."""

    NAME: ClassVar[str] = "actor.stop"
    TAG: ClassVar[int] = 8
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1


@dataclasses.dataclass(slots=True)
class Left(Struct):
    """`actor.left`, worker to orchestrator."""

    NAME: ClassVar[str] = "actor.left"
    TAG: ClassVar[int] = 10
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Why it leaves. It sends nothing after this.
    reason: Annotated[str, 1] = ""


@dataclasses.dataclass(slots=True)
class GenerateItem(Struct):
    #: Which response.
    response: Annotated[int, 1] = 0
    #: Tokens from an interrupted attempt.
    prefix: Annotated[Int32Array, 2] = dataclasses.field(default_factory=no_i4)


@dataclasses.dataclass(slots=True)
class Generate(Struct):
    """`rollout.generate`, orchestrator to worker."""

    NAME: ClassVar[str] = "rollout.generate"
    TAG: ClassVar[int] = 20
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this dispatch.
    lease: Annotated[int, 1] = 0
    #: Token ids, shared by the group.
    prompt: Annotated[Int32Array, 2] = dataclasses.field(default_factory=no_i4)
    #: Responses to generate.
    items: Annotated[list[GenerateItem], 3] = dataclasses.field(default_factory=list)
    #: Greedy decoding, whatever `sampling` says.
    greedy: Annotated[bool, 4] = False


@dataclasses.dataclass(slots=True)
class Segment(Struct):
    #: Policy version.
    version: Annotated[int, 1] = 0
    #: Number of consecutive tokens.
    tokens: Annotated[int, 2] = 0


@dataclasses.dataclass(slots=True)
class Tensor(Struct):
    #: Name.
    name: Annotated[str, 1] = ""
    #: Type of an element, as numpy names it: `int32`.
    dtype: Annotated[str, 2] = ""
    #: Shape, in C order.
    shape: Annotated[list[int], 3] = dataclasses.field(default_factory=list)
    #: Size of the array.
    bytes: Annotated[int, 4] = 0
    #: XXH3 (64 bits) of its bytes.
    checksum: Annotated[int, 5] = 0
    #: From an engine: name of a file in the folder `tensors.folder` of its role, or of a key
    #: without `tensors.prefix`. To a trainer: a path, or a whole key.
    file: Annotated[str, 6] = ""


@dataclasses.dataclass(slots=True)
class GeneratedItem(Struct):
    #: Lease it was dispatched under.
    lease: Annotated[int, 1] = 0
    #: Which response.
    response: Annotated[int, 2] = 0
    #: Token ids sampled by this attempt, without the prefix.
    tokens: Annotated[Int32Array, 3] = dataclasses.field(default_factory=no_i4)
    #: Log-prob of each token as sampled.
    logprobs: Annotated[Float32Array, 4] = dataclasses.field(default_factory=no_f4)
    #: Consecutive tokens by policy version.
    segments: Annotated[list[Segment], 5] = dataclasses.field(default_factory=list)
    #: Why it ended.
    finish: Annotated[FinishReason, 6] = FinishReason.END
    #: Per token: 1 if the policy sampled it, 0 if it came from elsewhere (a tool, a user turn).
    #: A token with 0 has log-prob 0 and is not trained on. Empty: all 1.
    mask: Annotated[Uint8Array, 7] = dataclasses.field(default_factory=no_u1)
    #: Per token: a reward assigned during generation (by an environment, at the end of a turn);
    #: empty: none. They are added to the reward of the whole response.
    rewards: Annotated[Float32Array, 8] = dataclasses.field(default_factory=no_f4)
    #: Why it failed, if `finish` is `failed`.
    failure: Annotated[str, 9] = ""
    #: Arrays for the trainer, about the whole response. None if it was interrupted.
    tensors: Annotated[list[Tensor], 10] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Generated(Struct):
    """`rollout.generated`, worker to orchestrator."""

    NAME: ClassVar[str] = "rollout.generated"
    TAG: ClassVar[int] = 21
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Responses.
    items: Annotated[list[GeneratedItem], 1] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Cancel(Struct):
    """`rollout.cancel`, orchestrator to worker."""

    NAME: ClassVar[str] = "rollout.cancel"
    TAG: ClassVar[int] = 22
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Responses that are no longer needed.
    responses: Annotated[list[int], 1] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Withdraw(Struct):
    """`rollout.withdraw`, orchestrator to worker."""

    NAME: ClassVar[str] = "rollout.withdraw"
    TAG: ClassVar[int] = 23
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Responses that continue on another engine.
    responses: Annotated[list[int], 1] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class ScoreReferenceItem(Struct):
    #: Prompt token ids.
    prompt: Annotated[Int32Array, 1] = dataclasses.field(default_factory=no_i4)
    #: Response token ids.
    response: Annotated[Int32Array, 2] = dataclasses.field(default_factory=no_i4)


@dataclasses.dataclass(slots=True)
class ScoreReference(Struct):
    """`reference.score`, orchestrator to worker."""

    NAME: ClassVar[str] = "reference.score"
    TAG: ClassVar[int] = 30
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this batch.
    lease: Annotated[int, 1] = 0
    #: Responses to score.
    items: Annotated[list[ScoreReferenceItem], 2] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class TopTokens(Struct):
    #: K token ids for each response token, one after another.
    ids: Annotated[Int32Array, 1] = dataclasses.field(default_factory=no_i4)
    #: The log-prob of each of them.
    logprobs: Annotated[Float32Array, 2] = dataclasses.field(default_factory=no_f4)


@dataclasses.dataclass(slots=True)
class ReferenceScored(Struct):
    """`reference.scored`, worker to orchestrator."""

    NAME: ClassVar[str] = "reference.scored"
    TAG: ClassVar[int] = 31
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the batch.
    lease: Annotated[int, 1] = 0
    #: Per item, one log-prob per response token.
    logprobs: Annotated[list[Float32Array], 2] = dataclasses.field(default_factory=list)
    #: Per item, the most likely tokens at each response token: `algorithm.distillation_top_k`
    #: of them. Left out if that is 0.
    top: Annotated[list[TopTokens] | None, 3] = None


@dataclasses.dataclass(slots=True)
class JudgeItem(Struct):
    #: Prompt text.
    prompt: Annotated[str, 1] = ""
    #: Expected answer.
    answer: Annotated[str, 2] = ""
    #: Response token ids.
    response: Annotated[Int32Array, 3] = dataclasses.field(default_factory=no_i4)
    #: Other columns of the prompt's row in its file, as a JSON object; or empty.
    columns: Annotated[str, 4] = ""


@dataclasses.dataclass(slots=True)
class Judge(Struct):
    """`reward.judge`, orchestrator to worker."""

    NAME: ClassVar[str] = "reward.judge"
    TAG: ClassVar[int] = 40
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this batch.
    lease: Annotated[int, 1] = 0
    #: Responses to judge.
    items: Annotated[list[JudgeItem], 2] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class JudgedItem(Struct):
    #: The reward, if judged.
    reward: Annotated[float, 1] = 0.0
    #: Why judging failed; empty if it succeeded.
    failure: Annotated[str, 2] = ""


@dataclasses.dataclass(slots=True)
class JudgeUsage(Struct):
    #: Requests, repeated ones included.
    requests: Annotated[int, 1] = 0
    #: Scores that a request for an equal question gave.
    cached: Annotated[int, 2] = 0
    #: Requests that repeat a failed one.
    retries: Annotated[int, 3] = 0
    #: Tokens of the questions, as reported.
    input_tokens: Annotated[int, 4] = 0
    #: Tokens of the replies, as reported.
    output_tokens: Annotated[int, 5] = 0
    #: Price of these tokens, by the prices of the judge.
    cost: Annotated[float, 6] = 0.0


@dataclasses.dataclass(slots=True)
class Judged(Struct):
    """`reward.judged`, worker to orchestrator."""

    NAME: ClassVar[str] = "reward.judged"
    TAG: ClassVar[int] = 41
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the batch.
    lease: Annotated[int, 1] = 0
    #: One verdict per response, in order.
    items: Annotated[list[JudgedItem], 2] = dataclasses.field(default_factory=list)
    #: The verifier has failed several times and given no reward since it was started. Ends a
    #: run that has had no reward yet.
    gave_up: Annotated[bool, 3] = False
    #: Of a sum of verifiers: the reward of each term by name, before its weight, one number per
    #: response; NaN where the term does not apply.
    terms: Annotated[dict[str, list[float]], 4] = dataclasses.field(default_factory=dict)
    #: Work of judges since the last message; nil: none.
    usage: Annotated[JudgeUsage | None, 5] = None


@dataclasses.dataclass(slots=True)
class CertificateEntry(Struct):
    #: Which group.
    group: Annotated[int, 1] = 0
    #: v0: version when the group's first token was dispatched.
    dispatched: Annotated[int, 2] = 0
    #: Version from which its age is counted, if not v0: the mean version of its tokens, rounded
    #: down.
    counted_from: Annotated[int | None, 3] = None


@dataclasses.dataclass(slots=True)
class Certificate(Struct):
    #: T: the policy version being updated.
    step: Annotated[int, 1] = 0
    #: Largest allowed age, in versions.
    bound: Annotated[int, 2] = 0
    #: The groups of the batch.
    groups: Annotated[list[CertificateEntry], 3] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class TrainItem(Struct):
    #: Group of the response.
    group: Annotated[int, 1] = 0
    #: Prompt token ids.
    prompt: Annotated[Int32Array, 2] = dataclasses.field(default_factory=no_i4)
    #: Response token ids.
    response: Annotated[Int32Array, 3] = dataclasses.field(default_factory=no_i4)
    #: Behavior log-probs, recorded at sampling.
    logprobs: Annotated[Float32Array, 4] = dataclasses.field(default_factory=no_f4)
    #: Reference log-probs; empty without a reference.
    reference: Annotated[Float32Array, 5] = dataclasses.field(default_factory=no_f4)
    #: Reward of the response.
    reward: Annotated[float, 6] = 0.0
    #: Policy version of its first token.
    first_version: Annotated[int, 7] = 0
    #: Consecutive tokens by policy version.
    segments: Annotated[list[Segment], 8] = dataclasses.field(default_factory=list)
    #: As in rollout.generated.
    mask: Annotated[Uint8Array, 9] = dataclasses.field(default_factory=no_u1)
    #: As in rollout.generated.
    rewards: Annotated[Float32Array, 10] = dataclasses.field(default_factory=no_f4)
    #: Which response; errors name it.
    id: Annotated[int, 11] = 0
    #: Arrays that its engine attached.
    tensors: Annotated[list[Tensor], 12] = dataclasses.field(default_factory=list)
    #: As in reference.scored.
    top: Annotated[TopTokens | None, 13] = None


@dataclasses.dataclass(slots=True)
class Train(Struct):
    """`trainer.train`, orchestrator to worker."""

    NAME: ClassVar[str] = "trainer.train"
    TAG: ClassVar[int] = 50
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this update.
    lease: Annotated[int, 1] = 0
    #: Versions, ages and bound of the batch.
    certificate: Annotated[Certificate, 2] = dataclasses.field(default_factory=Certificate)
    #: Responses; those of a group are adjacent.
    items: Annotated[list[TrainItem], 3] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class ExpertMetrics(Struct):
    #: Share of the token copies that were above the capacity of their expert.
    dropped: Annotated[float, 1] = 0.0
    #: The same, in the layer that drops most.
    dropped_most: Annotated[float, 2] = 0.0


@dataclasses.dataclass(slots=True)
class UpdateMetrics(Struct):
    #: Loss, mean over minibatches.
    loss: Annotated[float, 1] = 0.0
    #: k3 estimate to the reference.
    kl: Annotated[float, 2] = 0.0
    #: Share of tokens clipped.
    clip_fraction: Annotated[float, 3] = 0.0
    #: Mean probability ratio before the update.
    ratio_mean: Annotated[float, 4] = 0.0
    #: Mean of -log-prob.
    entropy: Annotated[float, 5] = 0.0
    #: Before clipping.
    gradient_norm: Annotated[float, 6] = 0.0
    #: Mean reward of the batch.
    reward_mean: Annotated[float, 7] = 0.0
    #: Forward-backward passes.
    micro_batches: Annotated[int, 8] = 0
    #: Prompt and response tokens.
    tokens: Annotated[int, 9] = 0
    #: Mean of |log ratio| before the update.
    log_ratio: Annotated[float, 10] = 0.0
    #: Mean weight of stale tokens.
    behaviour_weight: Annotated[float, 11] = 0.0
    #: Share of tokens whose weight was outside its range.
    capped_fraction: Annotated[float, 12] = 0.0
    #: Effective sample size of the importance ratios before the update, as a share of the
    #: tokens. 0: unknown.
    effective_samples: Annotated[float, 13] = 0.0
    #: Mean of |log ratio| of tokens that the version being updated sampled.
    mismatch: Annotated[float, 14] = 0.0
    #: Mean of |log ratio| of tokens that older versions sampled.
    stale_ratio: Annotated[float, 15] = 0.0
    #: Share of tokens of older versions.
    stale_tokens: Annotated[float, 16] = 0.0
    #: Loss of the critic, mean over minibatches; absent without a critic, as the following.
    critic_loss: Annotated[float | None, 17] = None
    #: Mean value of the tokens before the update.
    critic_value_mean: Annotated[float | None, 18] = None
    #: 1 - Var(return - value) / Var(return) of the tokens before the update. 0 if all returns
    #: are equal.
    critic_explained_variance: Annotated[float | None, 19] = None
    #: Share of tokens whose value was clipped.
    critic_clip_fraction: Annotated[float | None, 20] = None
    #: Learning rate of the policy in this step; absent if it was not trained.
    learning_rate: Annotated[float | None, 21] = None
    #: Copies of tokens for routed experts; absent without a capacity factor.
    experts: Annotated[ExpertMetrics | None, 22] = None


@dataclasses.dataclass(slots=True)
class WeightsHandle(Struct):
    #: Policy version of the image.
    version: Annotated[int, 1] = 0
    #: Size of the image, one safetensors file (for synthetic engines: any bytes).
    bytes: Annotated[int, 2] = 0
    #: XXH3-64 of the image.
    checksum: Annotated[int, 3] = 0
    #: Process that holds the memfd.
    pid: Annotated[int, 4] = 0
    #: Descriptor in that process; negative: sent as chunks.
    fd: Annotated[int, 5] = -1
    #: File with the image on a shared file system; then no chunks are sent.
    path: Annotated[str, 6] = ""
    #: From a trainer: chunks are sent only on request (weights.fetch), by its worker, which
    #: keeps the image until it has announced two later ones.
    on_request: Annotated[bool, 7] = False


@dataclasses.dataclass(slots=True)
class Trained(Struct):
    """`trainer.trained`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.trained"
    TAG: ClassVar[int] = 51
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the update.
    lease: Annotated[int, 1] = 0
    #: Groups that the trainer trained on.
    groups: Annotated[list[int], 2] = dataclasses.field(default_factory=list)
    #: Metrics of this update.
    metrics: Annotated[UpdateMetrics, 3] = dataclasses.field(default_factory=UpdateMetrics)
    #: The new version.
    weights: Annotated[WeightsHandle, 4] = dataclasses.field(default_factory=WeightsHandle)


@dataclasses.dataclass(slots=True)
class Prepare(Struct):
    """`trainer.prepare`, orchestrator to worker."""

    NAME: ClassVar[str] = "trainer.prepare"
    TAG: ClassVar[int] = 55
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of this work.
    lease: Annotated[int, 1] = 0
    #: Policy version being updated.
    step: Annotated[int, 2] = 0
    #: Responses; those of a group are adjacent.
    items: Annotated[list[TrainItem], 3] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Prepared(Struct):
    """`trainer.prepared`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.prepared"
    TAG: ClassVar[int] = 56
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Lease of the work.
    lease: Annotated[int, 1] = 0


@dataclasses.dataclass(slots=True)
class SaveState(Struct):
    """`trainer.save`, orchestrator to worker."""

    NAME: ClassVar[str] = "trainer.save"
    TAG: ClassVar[int] = 52
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Current version of the trainer.
    version: Annotated[int, 1] = 0
    #: Existing folder to write into.
    folder: Annotated[str, 2] = ""


@dataclasses.dataclass(slots=True)
class StateSaved(Struct):
    """`trainer.saved`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.saved"
    TAG: ClassVar[int] = 53
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version saved.
    version: Annotated[int, 1] = 0
    #: Why saving failed; empty if it succeeded.
    error: Annotated[str, 2] = ""


@dataclasses.dataclass(slots=True)
class TrainerReady(Struct):
    """`trainer.ready`, worker to orchestrator."""

    NAME: ClassVar[str] = "trainer.ready"
    TAG: ClassVar[int] = 60
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Its current weights.
    weights: Annotated[WeightsHandle, 1] = dataclasses.field(default_factory=WeightsHandle)


@dataclasses.dataclass(slots=True)
class StageWeights(Struct):
    """`weights.stage`, orchestrator to worker."""

    NAME: ClassVar[str] = "weights.stage"
    TAG: ClassVar[int] = 61
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: What to load and from where.
    weights: Annotated[WeightsHandle, 1] = dataclasses.field(default_factory=WeightsHandle)
    #: For a worker that relays weights: other workers that have the image or are receiving it.
    #: The worker asks them in this order (weights.fetch), and the orchestrator last. Empty: the
    #: orchestrator sends the image without being asked.
    sources: Annotated[list[RelayAddress], 2] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class WeightsChunk(Struct):
    """`weights.chunk`, both ways."""

    NAME: ClassVar[str] = "weights.chunk"
    TAG: ClassVar[int] = 62
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Policy version of the image.
    version: Annotated[int, 1] = 0
    #: Position of the chunk in the image, in bytes.
    offset: Annotated[int, 2] = 0
    #: XXH3-64 of the chunk.
    checksum: Annotated[int, 3] = 0
    #: The chunk, at most 1 MiB.
    data: Annotated[bytes, 4] = b""


@dataclasses.dataclass(slots=True)
class WeightsStaged(Struct):
    """`weights.staged`, worker to orchestrator."""

    NAME: ClassVar[str] = "weights.staged"
    TAG: ClassVar[int] = 63
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version staged.
    version: Annotated[int, 1] = 0
    #: Why staging failed; empty if it succeeded.
    error: Annotated[str, 2] = ""


@dataclasses.dataclass(slots=True)
class FetchWeights(Struct):
    """`weights.fetch`, both ways."""

    NAME: ClassVar[str] = "weights.fetch"
    TAG: ClassVar[int] = 66
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Policy version of the image.
    version: Annotated[int, 1] = 0
    #: Checksum of the whole image, as announced.
    checksum: Annotated[int, 2] = 0
    #: Offset of the first missing chunk, in bytes.
    offset: Annotated[int, 3] = 0


@dataclasses.dataclass(slots=True)
class FeedWeights(Struct):
    """`weights.feed`, orchestrator to worker."""

    NAME: ClassVar[str] = "weights.feed"
    TAG: ClassVar[int] = 67
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Public key of the other worker.
    key: Annotated[str, 1] = ""
    #: Whether it may fetch weights from now on.
    admitted: Annotated[bool, 2] = True


@dataclasses.dataclass(slots=True)
class CommitWeights(Struct):
    """`weights.commit`, orchestrator to worker."""

    NAME: ClassVar[str] = "weights.commit"
    TAG: ClassVar[int] = 64
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version to switch to.
    version: Annotated[int, 1] = 0


@dataclasses.dataclass(slots=True)
class WeightsCommitted(Struct):
    """`weights.committed`, worker to orchestrator."""

    NAME: ClassVar[str] = "weights.committed"
    TAG: ClassVar[int] = 65
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: Version that is now in use.
    version: Annotated[int, 1] = 0
    #: Why the commit failed; empty if it succeeded.
    error: Annotated[str, 2] = ""


@dataclasses.dataclass(slots=True)
class Switch(Struct):
    """`placement.switch`, orchestrator to worker."""

    NAME: ClassVar[str] = "placement.switch"
    TAG: ClassVar[int] = 70
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: The action.
    action: Annotated[SwitchAction, 1] = SwitchAction.INTERRUPT
    #: For onloading: the cards that the actor may use from now on; empty: all its cards.
    cards: Annotated[list[int], 2] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class SwitchCost(Struct):
    #: Wall time of the action.
    duration: Annotated[int, 1] = 0
    #: Bytes on the card before.
    device_before: Annotated[int, 2] = 0
    #: Bytes on the card after.
    device_after: Annotated[int, 3] = 0
    #: Bytes parked on the host before.
    host_before: Annotated[int, 4] = 0
    #: Bytes parked on the host after.
    host_after: Annotated[int, 5] = 0
    #: Highest resident memory so far.
    process_peak: Annotated[int, 6] = 0
    #: Resident memory after.
    process_after: Annotated[int, 7] = 0


@dataclasses.dataclass(slots=True)
class Switched(Struct):
    """`placement.switched`, worker to orchestrator."""

    NAME: ClassVar[str] = "placement.switched"
    TAG: ClassVar[int] = 71
    VERSION: ClassVar[int] = 1
    OLDEST: ClassVar[int] = 1

    #: The action.
    action: Annotated[SwitchAction, 1] = SwitchAction.INTERRUPT
    #: Time and bytes.
    cost: Annotated[SwitchCost, 2] = dataclasses.field(default_factory=SwitchCost)
    #: Why the action failed; empty if it succeeded.
    error: Annotated[str, 3] = ""


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
