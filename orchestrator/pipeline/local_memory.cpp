#include "orchestrator/pipeline/local_memory.hpp"

#include "actors/model_folder/adapter_layout.hpp"
#include "actors/model_folder/layout.hpp"
#include "actors/model_folder/model_folder.hpp"
#include "actors/task/tokenizer.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/teachers.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;

constexpr double kFloat = 4;
constexpr double kMiB = 1 << 20;
/// Memory of a worker that has loaded libtorch and holds nothing else, measured for a reward worker
/// (docs/reports/results.md).
constexpr double kProcess = 152 * kMiB;
/// rollout::TorchEngineOptions::prefill_tokens, which is not configurable.
constexpr double kPrefillRows = 2048;

/// Sizes of what one process may hold.
struct Part {
  std::string_view what;
  double bytes = 0;
};
using Parts = std::vector<Part>;

enum class Phase { Separate, Rollout, Score, Train };

constexpr std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::Separate:
      return "separate";
    case Phase::Rollout:
      return "rollout";
    case Phase::Score:
      return "score";
    case Phase::Train:
      return "train";
  }
  return "";
}

class Sizes {
 public:
  Sizes(const PipelineConfig& config,
        const actors::Layout& layout,
        const std::optional<actors::AdapterLayout>& adapter = {})
      : config_(config), layout_(layout), adapter_(adapter) {}

  double weights() const { return kFloat * static_cast<double>(layout_.size()); }
  double adapter() const { return adapter_ ? kFloat * static_cast<double>(adapter_->size()) : 0; }
  /// A network of the policy's shape beside it.
  double critic() const {
    const trainer::AlgorithmConfig& a = config_.algorithm;
    const bool trained = has_critic(trainer::resolve(a, config_.sampling.max_new_tokens));
    return trained ? kFloat * static_cast<double>(layout_.of_critic().size()) : 0;
  }
  /// Weights of the policy in the trainer: frozen ones are held as an engine holds them.
  double of_trainer() const { return adapter_ ? for_generation() + adapter() : weights(); }
  /// Floats with a gradient and two moments.
  double trained() const { return adapter_ ? adapter() : weights(); }
  /// The image of a version.
  double published() const { return adapter_ ? adapter() : for_generation(); }
  /// Versions before the current one that a rollout engine may keep.
  double older_versions() const {
    const bool finish = config_.rollout.on_new_weights == rollout::OnNewWeights::Finish;
    return finish ? std::floor(config_.staleness.bound) : 0;
  }
  /// Weights of a rollout engine without an adapter.
  double for_generation() const {
    if (layout_.model().compute_dtype == actors::ComputeType::Float32)
      return weights();
    double bytes = 0;
    for (const actors::TensorSpec& t : layout_.tensors())
      bytes += static_cast<double>(t.elements()) * (t.shape.size() == 2 ? kFloat / 2 : kFloat);
    return bytes;
  }
  double kv_cache(std::int32_t slots) const {
    const actors::ModelConfig& m = layout_.model();
    return kFloat * m.layers * slots * static_cast<double>(m.context.count()) * 2 *
           layout_.kv_width();
  }
  /// Buffers of one generation step, logits included.
  double step_rows(std::int32_t slots) const {
    const double rows =
        std::max<double>(slots, kPrefillRows + static_cast<double>(context().count()));
    const double width = 2.0 * hidden() + layout_.attention_width() + layout_.qkv_width() +
                         3.0 * layout_.model().ffn + layout_.vocabulary();
    return kFloat * rows * width;
  }
  /// Buffers of a pass with gradients: what each layer keeps until its backward pass, and the
  /// larger of the logits and the gradient through one layer.
  double activations() const {
    const double ffn = layout_.model().ffn;
    const double layer = kept_inputs() + 2.0 * hidden() + layout_.qkv_width() +
                         layout_.attention_width() + 2 * ffn + layout_.model().heads + 2;
    const double head = 2.0 * hidden() + layout_.vocabulary();
    const double beside = std::max<double>(layout_.vocabulary(), 2.0 * hidden() + 3 * ffn);
    return kFloat * rows() * (layout_.model().layers * layer + head + beside);
  }
  /// Buffers of a pass without gradients: one layer at a time, and the logits.
  double forward_rows() const {
    const double layer = 3.0 * hidden() + 2.0 * layout_.qkv_width() + layout_.attention_width() +
                         3.0 * layout_.model().ffn;
    return kFloat * rows() * std::max<double>(layer, 2.0 * hidden() + 2.0 * layout_.vocabulary());
  }

 private:
  double hidden() const { return layout_.model().hidden; }
  /// Inputs of linear layers that a block keeps only for the gradients of their weights. The
  /// gradients of an adapter compute them again.
  double kept_inputs() const { return adapter_ ? 0 : 2.0 * hidden() + layout_.model().ffn; }
  Tokens context() const { return layout_.model().context; }
  /// Rows of a micro-batch; at most those of a whole batch.
  double rows() const {
    const AlgorithmConfig& a = config_.algorithm;
    const auto response = static_cast<double>(config_.sampling.max_new_tokens.count());
    const double prompt = static_cast<double>(context().count()) - response;
    const double batch = a.groups_per_update * (prompt + a.responses_per_group * response);
    return std::min(static_cast<double>(a.micro_batch_tokens.count()), batch);
  }
  using AlgorithmConfig = trainer::AlgorithmConfig;

  const PipelineConfig& config_;
  const actors::Layout& layout_;
  const std::optional<actors::AdapterLayout> adapter_;
};

struct ModelSizes {
  Sizes policy;
  std::vector<Sizes> teachers;  ///< By number.

  const Sizes& of(const ActorSpec& actor) const {
    return actor.role == RoleKind::Reference ? teachers[actor.teacher.value_or(0)] : policy;
  }
};

/// What an actor holds during `phase`, in addition to its process.
Parts parts_of(const ActorSpec& actor, Phase phase, const Sizes& sizes) {
  const bool there = phase == Phase::Separate || !actor.takes_turns;
  switch (actor.role) {
    case RoleKind::Rollout: {
      Parts parts{{"rows of a step", sizes.step_rows(actor.concurrency)}};
      if (there || phase == Phase::Rollout) {
        parts.push_back({"weights", sizes.for_generation() + sizes.adapter()});
        parts.push_back({"KV cache", sizes.kv_cache(actor.concurrency)});
      }
      if (there)
        parts.push_back({"next version and its image", 2 * sizes.published()});
      if (sizes.older_versions() > 0)
        parts.push_back({"older versions", sizes.older_versions() * sizes.published()});
      return parts;
    }
    case RoleKind::Trainer:
      if (phase != Phase::Separate && phase != Phase::Train)
        return {{"weights", sizes.of_trainer() + sizes.critic()}};
      return {{"weights", sizes.of_trainer() + sizes.critic()},
              {"gradients", sizes.trained() + sizes.critic()},
              {"optimizer", 2 * (sizes.trained() + sizes.critic())},
              {"activations", sizes.activations()}};
    case RoleKind::Reference:
      if (!there && phase != Phase::Score)
        return {};
      return {{"weights", sizes.weights()}, {"rows of a pass", sizes.forward_rows()}};
    case RoleKind::Reward:
      return {};
  }
  return {};
}

/// The phases of the cards of this actor.
bool is_shared(const std::vector<ActorSpec>& actors, CardId card) {
  return std::ranges::any_of(actors, [card](const ActorSpec& a) {
    return a.takes_turns && std::ranges::find(a.cards, card) != a.cards.end();
  });
}

CardLedger card_ledger(const std::vector<ActorSpec>& actors,
                       CardId card,
                       Phase phase,
                       const ModelSizes& sizes) {
  CardLedger out{card, phase_name(phase), {}};
  for (const ActorSpec& actor : actors) {
    if (std::ranges::find(actor.cards, card) == actor.cards.end())
      continue;
    const auto share = 1 / static_cast<double>(actor.cards.size());
    out.parts.push_back({actor.name, "process", kProcess * share});
    for (const Part& part : parts_of(actor, phase, sizes.of(actor)))
      out.parts.push_back({actor.name, part.what, part.bytes * share});
  }
  return out;
}

std::string mib(double bytes) {
  return fmt::format("{:.1f}", bytes / kMiB);
}

/// The card that exceeds the limit most; null if none exceeds it.
const CardLedger* fullest(const LocalLedger& ledger, Bytes limit) {
  const auto most = std::ranges::max_element(
      ledger.cards, {}, [](const CardLedger& card) { return card.bytes(); });
  if (most == ledger.cards.end() || most->bytes() <= static_cast<double>(limit.count()))
    return nullptr;
  return &*most;
}

bool fits_here(const PipelineConfig& config) {
  const auto ledger = local_ledger(config);
  return ledger && fullest(*ledger, config.placement.card_memory) == nullptr;
}

/// The smallest single change that fits, as text.
std::string nearest_change(const PipelineConfig& config) {
  for (const actors::PlacementTraits& mode : actors::kPlacementModes) {
    if (!mode.alternates() || mode.value == config.placement.mode)
      continue;
    PipelineConfig other = config;
    other.placement = {};
    other.placement.mode = mode.value;
    other.placement.cards = config.placement.cards;
    other.placement.card_memory = config.placement.card_memory;
    if (fits_here(other))
      return fmt::format("placement.mode: {}", mode.name);
  }
  PipelineConfig other = config;
  while (other.rollout.concurrency > 1) {
    other.rollout.concurrency /= 2;
    if (fits_here(other))
      return fmt::format("rollout.concurrency: {}", other.rollout.concurrency);
  }
  other = config;
  while (other.algorithm.micro_batch_tokens.count() / 2 >= config.model.context.count()) {
    other.algorithm.micro_batch_tokens = Tokens(other.algorithm.micro_batch_tokens.count() / 2);
    if (fits_here(other))
      return fmt::format("algorithm.micro_batch_tokens: {}",
                         other.algorithm.micro_batch_tokens.count());
  }
  return "no single change fits";
}

/// Error: the folder of a teacher cannot be read.
Result<std::vector<actors::Layout>> layouts_of_teachers(const PipelineConfig& config,
                                                        std::int32_t tokens) {
  std::vector<actors::Layout> layouts;
  for (const Teacher& teacher : teachers_of(config)) {
    actors::ModelConfig model = config.model;
    if (!teacher.model.empty()) {
      TEMPER_TRY(const auto folder, actors::ModelFolder::open(teacher.model, config.model.ignore));
      model = folder.model();
      model.compute_dtype = config.model.compute_dtype;
    }
    TEMPER_TRY(auto layout, actors::Layout::make(model, tokens));
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

/// Reports why the memory of a process is unknown.
void require_predictable(const PipelineConfig& c, Rules& rules) {
  const auto needs = [&](bool holds, std::string key, std::string_view what) {
    rules.require(holds,
                  {"placement.card_memory", std::move(key)},
                  fmt::format("the memory of a card can only be predicted for {}", what));
  };
  needs(c.hardware == HardwareKind::Local, "hardware", "`hardware: local`");
  needs(c.policy == actors::PolicyKind::Torch, "policy", "`policy: torch`");
  const auto check_role = [&](const std::string& role, const auto& section) {
    needs(section.engine.kind == actors::EngineKind::Native,
          role + ".engine.kind",
          "`native` engines");
    needs(section.launch == LaunchKind::Local, role + ".launch", "`launch: local`");
  };
  check_role("rollout", c.rollout);
  check_role("trainer", c.trainer);
  for (const Teacher& t : teachers_by_engine(c)) {
    needs(t.engine.kind == actors::EngineKind::Native,
          t.engine_section + ".engine.kind",
          "`native` engines");
  }
  needs(c.reference.launch == LaunchKind::Local, "reference.launch", "`launch: local`");
  check_role("reward", c.reward);
}

}  // namespace

double CardLedger::bytes() const {
  double sum = 0;
  for (const LocalBytes& part : parts)
    sum += part.bytes;
  return sum;
}

std::string CardLedger::text() const {
  std::string out;
  for (auto part = parts.begin(); part != parts.end();) {
    std::string items;
    double sum = 0;
    const std::string& actor = part->actor;
    for (; part != parts.end() && part->actor == actor; ++part) {
      items += fmt::format("{}{} {}", items.empty() ? "" : ", ", part->what, mib(part->bytes));
      sum += part->bytes;
    }
    out += fmt::format("{}{} {} ({})", out.empty() ? "" : ", ", actor, mib(sum), items);
  }
  return out;
}

double LocalLedger::most() const {
  double always = 0;
  std::map<std::string_view, double> by_phase;
  for (const CardLedger& card : cards)
    (card.phase == phase_name(Phase::Separate) ? always : by_phase[card.phase]) += card.bytes();
  double most = 0;
  for (const auto& [phase, bytes] : by_phase)
    most = std::max(most, bytes);
  return always + most;
}

bool has_local_ledger(const PipelineConfig& config) {
  Rules rules;
  require_predictable(config, rules);
  return rules.hold();
}

Result<LocalLedger> local_ledger(const PipelineConfig& config) {
  const std::int32_t tokens = actors::Tokenizer::for_task(config.task).vocabulary();
  TEMPER_TRY(const auto layout, actors::Layout::make(config.model, tokens));
  TEMPER_TRY(const auto teacher_layouts, layouts_of_teachers(config, tokens));
  std::optional<actors::AdapterLayout> adapter;
  if (config.model.lora) {
    TEMPER_TRY(adapter, actors::AdapterLayout::make(layout, *config.model.lora));
  }
  const Sizes sizes(config, layout, adapter);
  ModelSizes models{sizes, {}};
  for (const actors::Layout& teacher : teacher_layouts)
    models.teachers.emplace_back(config, teacher);
  const PlacementConfig placement = resolve_placement(config);
  const std::vector<ActorSpec> actors = actor_slots(config, placement);
  LocalLedger out;
  bool parks = false;
  for (std::int32_t i = 0; i < placement.cards; ++i) {
    const CardId card(static_cast<std::uint32_t>(i));
    std::vector<Phase> phases{Phase::Separate};
    if (is_shared(actors, card)) {
      phases = {Phase::Rollout, Phase::Train};
      if (traits_of(placement.mode).shares_reference && config.reference.replicas > 0)
        phases.push_back(Phase::Score);
      parks = true;
    }
    for (const Phase phase : phases)
      out.cards.push_back(card_ledger(actors, card, phase, models));
  }
  out.host = sizes.published() * trainer::kPublishedKept +
             (sizes.trained() + sizes.critic()) * (parks ? 2 : 0);
  return out;
}

void check_local_memory(const PipelineConfig& config, Rules& rules) {
  const Bytes limit = config.placement.card_memory;
  if (limit == Bytes(0))
    return;
  if (!has_local_ledger(config))
    return require_predictable(config, rules);
  const auto ledger = local_ledger(config);
  if (!ledger)
    return;  // Reported as an issue of the model.
  const CardLedger* card = fullest(*ledger, limit);
  if (card == nullptr)
    return;
  const std::string when =
      card->phase == phase_name(Phase::Separate) ? "" : fmt::format(" in phase `{}`", card->phase);
  rules.require(false,
                {"placement.card_memory", "placement", "rollout.concurrency"},
                fmt::format("card {} needs {} MiB{}, found {}: {}; nearest: {}",
                            card->card,
                            mib(card->bytes()),
                            when,
                            mib(static_cast<double>(limit.count())),
                            card->text(),
                            nearest_change(config)));
}

}  // namespace temper::orchestrator
