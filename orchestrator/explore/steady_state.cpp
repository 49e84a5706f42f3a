#include "orchestrator/explore/steady_state.hpp"

#include "actors/simulation/costs.hpp"
#include "actors/simulation/lengths.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "orchestrator/config/placement.hpp"
#include "orchestrator/config/switch_plan.hpp"
#include "rollout/simulated/engine_cost.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

namespace temper::orchestrator {
namespace {

using actors::SimulationSettings;

/// Parts of an integral over tokens, and of the bisection for K.
constexpr int kGrid = 24;
constexpr int kHalvings = 14;

/// What the first batch of the run draws.
struct Drawn {
  static constexpr std::size_t kBins = 256;

  std::vector<Tokens> sequences;  ///< Prompt and response, of every response.
  double prompt = 0;              ///< Mean.
  double mean = 0;                ///< Of responses, as all below.
  double longest = 0;
  double residual = 0;   ///< Mean of what is left of one met at random: E[x^2] / (2 E[x]).
  double group_end = 0;  ///< Mean of the longest of a group.
  std::array<double, kBins + 2> longer{};     ///< Share longer than a bin's begin.
  std::array<double, kBins + 2> left_over{};  ///< Of `longer`: integral from there on, over mean.

  /// Of the first `count` sequences.
  const actors::Packing& packed(std::int64_t count, const actors::PackingLimits& limits) {
    const auto end = sequences.begin() + count;
    return packings_.try_emplace(count, std::vector(sequences.begin(), end)).first->second(limits);
  }
  /// Share longer than `tokens`.
  double survivors(double tokens) const { return look_up(longer, tokens); }
  /// Share of responses met at random that have more than `tokens` left.
  double residual_survivors(double tokens) const { return look_up(left_over, tokens); }

 private:
  double look_up(const std::array<double, kBins + 2>& table, double tokens) const {
    const double at = std::max(0.0, tokens / longest * kBins);
    if (at >= kBins)
      return 0;
    const auto bin = static_cast<std::size_t>(at);
    const double rest = at - static_cast<double>(bin);
    return table[bin] * (1 - rest) + table[bin + 1] * rest;
  }

  std::map<std::int64_t, actors::Packings> packings_;
};

Drawn draw(const PipelineConfig& c, const actors::SimulationConfig& simulation) {
  const actors::Lengths prompts(simulation.prompt, c.seed, actors::kPromptLengths);
  const actors::Lengths responses(simulation.response, c.seed, actors::kResponseLengths);
  const auto size = static_cast<std::uint64_t>(c.algorithm.responses_per_group);
  const auto groups = static_cast<std::uint64_t>(c.algorithm.groups_per_update);
  Drawn d;
  std::vector<double> lengths;
  double squares = 0;
  for (std::uint64_t g = 0; g < groups; ++g) {
    const Tokens prompt = prompts.of(g);
    double longest = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      const Tokens response = responses.of(g * size + i, g);
      d.sequences.push_back(prompt + response);
      lengths.push_back(static_cast<double>(response.count()));
      longest = std::max(longest, lengths.back());
      squares += lengths.back() * lengths.back();
    }
    d.prompt += static_cast<double>(prompt.count()) / static_cast<double>(groups);
    d.group_end += longest / static_cast<double>(groups);
  }
  std::ranges::sort(lengths);
  const auto count = static_cast<double>(lengths.size());
  d.mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / count;
  d.residual = squares / count / (2 * d.mean);
  d.longest = lengths.back();
  for (std::size_t bin = 0; bin < Drawn::kBins; ++bin) {
    const double begin = d.longest * static_cast<double>(bin) / Drawn::kBins;
    const auto above = lengths.end() - std::ranges::upper_bound(lengths, begin);
    d.longer[bin] = static_cast<double>(above) / count;
  }
  for (std::size_t bin = Drawn::kBins; bin-- > 0;) {
    const double part = (d.longer[bin] + d.longer[bin + 1]) / 2 * d.longest / Drawn::kBins;
    d.left_over[bin] = d.left_over[bin + 1] + part / d.mean;
  }
  return d;
}

/// An engine and its steps.
struct Engine {
  rollout::EngineCost cost;
  double replicas = 1;
  double cache = 0;                          ///< Tokens of a replica.
  double swap = 0;                           ///< Taking over new weights.
  std::map<std::int64_t, double> prefill{};  ///< Seconds, by prompts.

  explicit Engine(const SimulationSettings& s)
      : cost(s),
        replicas(static_cast<double>(cost.replicas())),
        cache(static_cast<double>(actors::kv_tokens(s).count())),
        swap(actors::swap_seconds(sim_hw::make_fabric(s.cluster), s)) {}

  /// Of `b` responses on each replica.
  double step(double b, double context) {
    const double whole = std::max(1.0, std::ceil(b - 1e-9));
    const auto running = static_cast<std::int64_t>(whole * replicas);
    const auto d = cost.decode(running);
    return d.fixed + d.per_context * d.running * context;
  }
  double prefill_seconds(std::int64_t prompts, double tokens) {
    const auto [known, fresh] = prefill.try_emplace(prompts, 0);
    if (fresh) {
      std::deque<rollout::PrefillPiece> pieces(
          static_cast<std::size_t>(prompts),
          rollout::PrefillPiece{.tokens = std::max<std::int64_t>(1, std::llround(tokens))});
      while (!pieces.empty()) {
        known->second += cost.prefill(pieces);
        cost.finish_prefill(pieces);
      }
    }
    return known->second;
  }
};

/// All that a configuration means for the equations of the header.
struct Terms {
  const Drawn& drawn;
  Engine& engine;
  double eta = 0;
  double fresh = 0;  ///< Responses of a batch per replica.
  double slots = 0;  ///< Of a replica.
  double full = 0;   ///< The same, or what its cache holds of responses met at random.
  double update = 0, publish = 0, prefill = 0;  ///< prefill: with taking over weights.
  double scoring = 0;                           ///< A: a pass over the batch.
  double scored = 0;                            ///< Q without waiting for a pass under way.
  double to_rollout = 0, to_training = 0;
  double return_share = 0;
  double group = 1;  ///< Responses of one.

  double context() const { return drawn.prompt + drawn.residual; }
  /// Q where the reference is busy for this share.
  double latency(double busy) const {
    return std::min(scoring + scored, scored * (1 + 0.5 / std::max(0.05, 1 - busy)));
  }
};

/// Seconds until at most `left` of `n` responses per replica have not ended, where the slots and
/// the cache are full until no response waits.
double drain(const Terms& t, double n, double left) {
  const Drawn& d = t.drawn;
  const double running = std::min(n, t.full);
  const double tokens = std::max(0.0, n * d.mean - running * d.residual);
  double seconds = tokens / running * t.engine.step(running, t.context());
  const double width = d.longest / kGrid;
  for (int i = 0; i < kGrid; ++i) {
    const double begin = width * i;
    const double now = running * d.residual_survivors(begin);
    if (now <= left)
      break;
    const double next = running * d.residual_survivors(begin + width);
    const double part = next >= left ? 1 : (now - left) / (now - next);
    const double between = running * d.residual_survivors(begin + width / 2);
    seconds += part * width * t.engine.step(between, t.context() + begin + width / 2);
  }
  return seconds;
}

/// What a replica does from one admission of `fresh` responses to the next.
struct Burst {
  double seconds = 0;
  double longest = 0;  ///< From dispatch to its end, where bursts follow each other.
  bool fits = true;    ///< In slots and cache.
};

/// P(K) and T(K) of the header, for `fresh` responses per replica and burst.
Burst burst(const Terms& t, double fresh, double tokens) {
  const Drawn& d = t.drawn;
  const double width = tokens / kGrid;
  const auto bursts = static_cast<int>(d.longest / tokens);
  const double rest = d.longest - tokens * bursts;
  Burst out;
  double rest_seconds = 0;
  for (int i = 0; i < kGrid; ++i) {
    const double phase = width * (i + 0.5);
    double running = 0, context = 0;
    for (int j = 0; j <= bursts; ++j) {
      const double there = d.survivors(phase + tokens * j);
      running += there;
      context += there * (phase + tokens * j);
    }
    if (running <= 0)
      break;
    const double own = d.prompt / t.group + context / running;  // the prompt is a group's
    out.fits &= fresh * running <= t.slots && fresh * running * own <= t.engine.cache;
    const double seconds = width * t.engine.step(fresh * running, d.prompt + context / running);
    out.seconds += seconds;
    rest_seconds += seconds * std::clamp((rest - width * i) / width, 0.0, 1.0);
  }
  out.longest = bursts * out.seconds + rest_seconds;
  return out;
}

/// The least period in which the update and the reference keep up, and the longest answer is there
/// in eta + 1 periods.
double least(const Terms& t, double longest, double period) {
  const double pace = std::max(t.update, t.scoring);
  const double q = t.latency(t.scoring / std::max(period, pace));
  return std::max(pace, (longest + q + t.update + t.publish) / (t.eta + 1));
}

SteadyState with_own_cards(const Terms& t) {
  SteadyState out;
  const Drawn& d = t.drawn;
  double low = d.longest / 64, high = d.longest;
  const auto needed = [&](const Burst& b) {
    return least(t, b.longest + t.prefill, b.seconds + t.prefill);
  };
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    const Burst b = burst(t, t.fresh, middle);
    (b.seconds + t.prefill < needed(b) ? low : high) = middle;
  }
  const Burst b = burst(t, t.fresh, high);
  out.seconds_per_update = std::max(b.seconds + t.prefill, needed(b));
  out.pace = Pace::LongAnswers;
  const double step = t.engine.step(t.full, t.context());
  if (!b.fits) {
    const double full = t.fresh * d.mean / t.full * step + t.prefill;
    out.seconds_per_update = std::max(full, least(t, d.longest * step + t.prefill, full));
    if (full >= out.seconds_per_update)
      out.pace = Pace::Slots;
  }
  const double p = out.seconds_per_update;
  if (p <= t.update * 1.001)
    out.pace = Pace::Update;
  else if (p <= t.scoring * 1.001)
    out.pace = Pace::Reference;
  out.staleness_mean = t.eta;
  if (out.pace == Pace::Slots) {
    const double response = t.slots / t.fresh * p;  // Little's law
    const double group = response + (d.group_end - d.mean) * step;
    const double there = group + t.prefill + t.latency(t.scoring / p) + p / 2;
    const double wait = p - t.update - t.publish;
    out.staleness_mean = std::clamp((there - wait) / p + 0.5, 0.0, t.eta);
  }
  return out;
}

/// Until the last of `n` responses per replica that begin together.
double alone(const Terms& t, double n) {
  const Burst b = burst(t, n, t.drawn.longest);
  return b.fits ? b.seconds : drain(t, n, 0);
}

SteadyState synchronous(const Terms& t) {
  SteadyState out;
  const double generation = alone(t, t.fresh) + t.prefill;
  const double scoring = t.scored * 1.5 + std::max(0.0, t.scoring - generation);
  out.seconds_per_update = generation + scoring + t.update + t.publish;
  out.pace = Pace::LongAnswers;
  return out;
}

/// A turn that trains `batches`.
struct Turn {
  double seconds = 0;  ///< Of generation.
  double whole = 0;    ///< Batches that are whole at its end, of eta + 1.
};

/// Of generation where slots or cache are full at first: what the turn before left goes on too, and
/// the longest answer still needs (eta + 1) / batches turns at most.
double full_turn(const Terms& t, double fresh, double left, double batches) {
  const Drawn& d = t.drawn;
  const double longest = d.longest * batches / (t.eta + 1) * t.engine.step(t.full, t.context());
  return std::max(drain(t, fresh + left * d.residual / d.mean, left), left > 0 ? longest : 0);
}

Turn turn(const Terms& t, double batches, double left) {
  const Drawn& d = t.drawn;
  const double fresh = batches * t.fresh;
  // What is left at the end of a turn with K tokens: all older bursts, from there on.
  const auto rest = [&](double tokens, const auto& share) {
    double sum = 0;
    for (double at = tokens; at < d.longest; at += tokens)
      sum += share(d.survivors(at));
    return sum;
  };
  double low = d.longest / 64, high = d.longest;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    (fresh * rest(middle, std::identity()) > left ? low : high) = middle;
  }
  const double unfinished =
      batches * rest(high, [&](double share) { return 1 - std::pow(1 - share, t.group); });
  // No answer may need more turns than the bound leaves it.
  const Burst b = burst(t, fresh, std::max(high, d.longest * batches / (t.eta + 1)));
  return {b.fits ? b.seconds : full_turn(t, fresh, left, batches), t.eta + 1 - unfinished};
}

enum class Reference { Elsewhere, InTurn };

SteadyState in_turns(const Terms& t, Reference reference) {
  SteadyState out;
  const double left = t.eta > 0 ? t.return_share * t.slots : 0;
  double batches = std::floor(t.eta + 1);
  Turn at = turn(t, batches, left);
  while (batches > 1 && at.whole < batches - 1e-9)
    at = turn(t, --batches, left);
  const double generation = at.seconds + t.prefill * batches;
  const double each = (generation + t.to_rollout + t.to_training) / batches + t.update;
  const double after = t.scored * 1.5 + std::max(0.0, t.scoring * batches - generation);
  out.seconds_per_update = reference == Reference::InTurn
                               ? each + t.scoring
                               : std::max(each + after / batches, t.scoring);
  out.staleness_mean = std::max(0.0, t.eta - (batches - 1) / 2);
  out.pace = Pace::Turns;
  return out;
}

/// Own cards of the rollout, and the trainer's while they have nothing to train.
SteadyState with_lent_cards(Terms t, double lent_per_own) {
  const double fresh = t.fresh;
  SteadyState out = t.eta > 0 ? with_own_cards(t) : synchronous(t);
  for (int i = 0; i < 4; ++i) {
    const double p = out.seconds_per_update;
    const double idle = std::max(0.0, p - t.update - t.to_rollout - t.to_training) / p;
    t.fresh = fresh / (1 + lent_per_own * idle);
    out = t.eta > 0 ? with_own_cards(t) : synchronous(t);
  }
  return out;
}

SteadyState settle(const Terms& t, const PlacementConfig& cards) {
  switch (cards.mode) {
    case PlacementMode::Separate:
      break;
    case PlacementMode::Hybrid:
      return with_lent_cards(t,
                             static_cast<double>(std::ssize(cards.trainer)) /
                                 static_cast<double>(std::ssize(cards.rollout)));
    case PlacementMode::Colocated:
      return in_turns(t, Reference::Elsewhere);
    case PlacementMode::Fused:
      return in_turns(t, Reference::InTurn);
  }
  return t.eta > 0 ? with_own_cards(t) : synchronous(t);
}

bool takes_turns(PlacementMode mode) {
  return mode == PlacementMode::Colocated || mode == PlacementMode::Fused;
}

}  // namespace

class SteadyStateModel::Costs {
 public:
  explicit Costs(SimulationSettings settings)
      : settings_(std::move(settings)), fabric_(sim_hw::make_fabric(settings_.cluster)) {}

  SteadyState judge(const PipelineConfig& c);

 private:
  using Key = std::array<std::int64_t, 16>;

  static void add_trainer(Key& key, const actors::TrainerEngineConfig& t, std::int64_t cards) {
    std::ranges::copy(std::array{t.tp,
                                 t.pp,
                                 t.vpp,
                                 t.ep,
                                 t.cp,
                                 t.micro_batch_tokens,
                                 std::int64_t{t.optimizer_on_host},
                                 cards},
                      key.begin());
  }
  SimulationSettings settings_for(const PipelineConfig& c, std::int64_t cards) const {
    SimulationSettings s = settings_;
    const auto prompt = s.config.prompt.lengths, response = s.config.response.lengths;
    s.config = c.simulation;
    s.config.prompt.lengths = prompt;
    s.config.response.lengths = response;
    s.cards = cards;
    return s;
  }
  Drawn& drawn(const PipelineConfig& c);
  Engine& engine(const PipelineConfig& c, const PlacementConfig& cards);
  double update(const PipelineConfig& c, const PlacementConfig& cards, Drawn& drawn);
  struct Scoring {
    double batch = 0, group = 0;
  };
  Scoring scoring(const PipelineConfig& c, const PlacementConfig& cards, Drawn& drawn);
  struct Moves {
    double publish = 0, to_rollout = 0, to_training = 0;
  };
  Moves moves(const PipelineConfig& c, const PlacementConfig& cards);

  const SimulationSettings settings_;
  const sim_hw::Fabric fabric_;
  std::map<std::pair<std::int32_t, std::int32_t>, Drawn> drawn_;
  std::map<Key, std::unique_ptr<Engine>> engines_;
  std::map<Key, double> updates_;
  std::map<Key, Scoring> scorings_;
  std::map<Key, Moves> moves_;
};

Drawn& SteadyStateModel::Costs::drawn(const PipelineConfig& c) {
  const std::pair key{c.algorithm.groups_per_update, c.algorithm.responses_per_group};
  const auto known = drawn_.find(key);
  return known != drawn_.end() ? known->second
                               : drawn_.emplace(key, draw(c, settings_.config)).first->second;
}

Engine& SteadyStateModel::Costs::engine(const PipelineConfig& c, const PlacementConfig& cards) {
  const actors::RolloutEngineConfig& r = c.simulation.rollout;
  const std::int64_t size = std::ssize(cards.rollout) / c.rollout.replicas;
  const bool turns = takes_turns(cards.mode);
  const Key key{size,
                r.tp,
                r.ep,
                std::lround(r.kv_share * 1e4),
                r.block,
                r.prefill_tokens,
                std::int64_t{r.tuned_host},
                std::int64_t{turns}};
  std::unique_ptr<Engine>& known = engines_[key];
  if (!known) {
    SimulationSettings s = settings_for(c, size);
    s.colocated = turns;
    known = std::make_unique<Engine>(s);
  }
  return *known;
}

double SteadyStateModel::Costs::update(const PipelineConfig& c,
                                       const PlacementConfig& cards,
                                       Drawn& drawn) {
  Key key{};
  add_trainer(key, c.simulation.trainer, std::ssize(cards.trainer));
  key[8] = c.algorithm.groups_per_update;
  key[9] = c.algorithm.responses_per_group;
  const auto [known, fresh] = updates_.try_emplace(key, 0);
  if (fresh) {
    SimulationSettings s = settings_for(c, std::ssize(cards.trainer));
    s.trainer_cards = s.cards;
    const trainer::UpdateModel update(s);
    known->second = update.seconds(drawn.packed(std::ssize(drawn.sequences), update.limits()));
  }
  return known->second;
}

SteadyStateModel::Costs::Scoring SteadyStateModel::Costs::scoring(const PipelineConfig& c,
                                                                  const PlacementConfig& cards,
                                                                  Drawn& drawn) {
  const std::int32_t actors = c.reference.replicas;
  if (actors == 0)
    return {};
  const std::int64_t size = std::ssize(cards.reference) / actors;
  Key key{};
  add_trainer(key, c.simulation.trainer, size);
  key[8] = c.algorithm.groups_per_update;
  key[9] = c.algorithm.responses_per_group;
  key[10] = actors;
  const auto [known, fresh] = scorings_.try_emplace(key);
  if (fresh) {
    const actors::ReferenceModel model(settings_for(c, size));
    const auto part = [&](std::int64_t responses) {
      return model.seconds(drawn.packed(responses, model.limits()));
    };
    known->second = {part(std::max<std::int64_t>(1, std::ssize(drawn.sequences) / actors)),
                     part(c.algorithm.responses_per_group)};
  }
  return known->second;
}

SteadyStateModel::Costs::Moves SteadyStateModel::Costs::moves(const PipelineConfig& c,
                                                              const PlacementConfig& cards) {
  const actors::RolloutEngineConfig& r = c.simulation.rollout;
  Key key{};
  add_trainer(key, c.simulation.trainer, std::ssize(cards.trainer));
  std::ranges::copy(std::array{r.tp,
                               r.ep,
                               std::lround(r.kv_share * 1e4),
                               std::ssize(cards.rollout) / c.rollout.replicas,
                               static_cast<std::int64_t>(cards.mode)},
                    key.begin() + 8);
  const auto [known, fresh] = moves_.try_emplace(key);
  if (!fresh)
    return known->second;
  const SimulatedPlacement placement =
      simulated_placement(c, settings_for(c, std::ssize(cards.rollout) / c.rollout.replicas));
  if (cards.mode == PlacementMode::Separate || cards.mode == PlacementMode::Hybrid)
    known->second.publish = actors::publish_seconds(fabric_, placement.settings);
  if (cards.mode != PlacementMode::Separate) {
    const SwitchPlan plan = predict_switch(placement);
    for (const PredictedState& state : plan.to_rollout)
      known->second.to_rollout += state.seconds;
    for (const PredictedState& state : plan.to_training)
      known->second.to_training += state.seconds;
  }
  return known->second;
}

SteadyState SteadyStateModel::Costs::judge(const PipelineConfig& c) {
  const PlacementConfig cards = resolve_placement(c);
  Drawn& d = drawn(c);
  Terms t{.drawn = d, .engine = engine(c, cards)};
  const auto as_double = [](auto number) { return static_cast<double>(number); };
  t.eta = c.staleness.policy == PolicyRule::Sync ? 0 : c.staleness.bound;
  const double engines = as_double(c.rollout.replicas);
  const double batch = as_double(c.algorithm.groups_per_update);
  t.group = as_double(c.algorithm.responses_per_group);
  const double responses = batch * t.group;
  t.fresh = responses / (engines * t.engine.replicas);
  const double most = t.engine.cache / (t.context() - d.prompt * (1 - 1 / t.group));
  t.slots = as_double(c.rollout.concurrency) / t.engine.replicas;
  t.full = std::max(1.0, std::min(t.slots, most));
  t.update = update(c, cards, d);
  const Scoring s = scoring(c, cards, d);
  t.scoring = s.batch;
  t.scored = s.group + seconds(c.simulation.reward.mean);
  const auto prompts = static_cast<std::int64_t>(std::ceil(batch / engines));
  t.prefill = t.engine.prefill_seconds(prompts, d.prompt) + t.engine.swap;
  const Moves m = moves(c, cards);
  t.publish = m.publish + t.engine.swap;
  t.to_rollout = m.to_rollout;
  t.to_training = m.to_training;
  t.return_share = cards.return_share;
  SteadyState out = settle(t, cards);
  const double tokens = responses * (d.prompt + d.mean);
  out.trained_per_s = tokens / out.seconds_per_update;
  return out;
}

SteadyStateModel::SteadyStateModel(SimulationSettings settings)
    : costs_(std::make_unique<Costs>(std::move(settings))) {}
SteadyStateModel::~SteadyStateModel() = default;
SteadyStateModel::SteadyStateModel(SteadyStateModel&&) noexcept = default;
SteadyStateModel& SteadyStateModel::operator=(SteadyStateModel&&) noexcept = default;

SteadyState SteadyStateModel::operator()(const PipelineConfig& config) {
  return costs_->judge(config);
}

}  // namespace temper::orchestrator
