// The equations of the closed form (steady_state.hpp), one function per placement. Notation: B
// groups of G responses per update, eta the bound, K the tokens that a response gains between two
// admissions, step(b, c) the decode step of b responses with mean context c per replica.
//
// With tool calls, all lengths are stays in decode steps of the engine (Lifetimes), and so is K: a
// response that waits for a tool keeps its slot, and the engine does steps without it. By Little's
// law, those that decode are to those that stay as decoded tokens are to steps. A step also
// prefills the results that come in it, and caches of callers that others have taken.
#include "study/search/steady_terms.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace temper::study::steady {
namespace {

/// Number of intervals of an integral over tokens, and of steps of the bisection for K.
constexpr int kGrid = 24;
constexpr int kHalvings = 14;

/// A time of generation.
struct Generation {
  double seconds = 0;
  double step = 0;  ///< Mean seconds of a decode step in it.
};

/// Until at most `left` of `n` responses per replica are unfinished, if slots and cache stay full
/// until no response waits.
Generation drain(const SteadyTerms& t, double n, double left) {
  const Lifetimes& d = t.batch;
  const double running = std::min(n, t.full);
  const double tokens = std::max(0.0, n * d.mean - running * d.residual);
  double steps = tokens / running;
  double seconds = steps * t.step(running, t.context());
  if (running >= t.full)
    seconds *= t.held() / (d.mean * t.step(t.full, t.context()));
  const double width = d.longest / kGrid;
  for (int i = 0; i < kGrid; ++i) {
    const double begin = width * i;
    const double now = running * d.residual_survivors(begin);
    if (now <= left)
      break;
    const double next = running * d.residual_survivors(begin + width);
    const double part = next >= left ? 1 : (now - left) / (now - next);
    const double between = running * d.residual_survivors(begin + width / 2);
    const double gained = d.tokens_per_step;
    const double context = t.context() + begin * gained + width / 2 * gained;
    seconds += part * width * t.step(between, context);
    steps += part * width;
  }
  return {seconds, seconds / steps};
}

/// Work of a replica between two admissions of `fresh` responses.
struct Burst {
  double seconds = 0;
  double longest = 0;  ///< From dispatch to end, if bursts follow each other.
  bool fits = true;    ///< Slots and cache suffice.
};

/// Bursts of `fresh` responses per replica follow each other, one whenever the responses have
/// gained `tokens` (K) more. At phase y of a burst a replica runs b(y) = fresh * sum over j >= 0 of
/// survivors(y + j K) responses. So the burst takes the integral of step(b(y)) over y from 0 to K,
/// and the longest response takes floor(longest / K) bursts and a part of one.
Burst burst(const SteadyTerms& t, double fresh, double tokens) {
  const Lifetimes& d = t.batch;
  const double width = tokens / kGrid;
  const auto bursts = static_cast<int>(d.longest / tokens);
  const double rest = d.longest - tokens * bursts;
  Burst out;
  double rest_seconds = 0;
  for (int i = 0; i < kGrid; ++i) {
    const double phase = width * (i + 0.5);
    double running = 0, decoding = 0, stayed = 0;
    for (int j = 0; j <= bursts; ++j) {
      const double there = d.survivors(phase + tokens * j);
      running += there;
      decoding += d.decoding_survivors(phase + tokens * j);
      stayed += there * (phase + tokens * j);
    }
    if (running <= 0)
      break;
    const double context = stayed / running * d.tokens_per_step;
    // All responses of a group share its prompt, and those that wait for tools lend their caches.
    const double own = d.prompt / t.group + context;
    out.fits &= fresh * running <= t.slots && fresh * decoding * own <= t.engine.cache();
    const double seconds = width * t.step(fresh * running, fresh * decoding, d.prompt + context);
    out.seconds += seconds;
    rest_seconds += seconds * std::clamp((rest - width * i) / width, 0.0, 1.0);
  }
  out.longest = bursts * out.seconds + rest_seconds;
  return out;
}

/// The shortest period in which update and reference keep up, and the longest response finishes
/// within eta + 1 periods.
double least(const SteadyTerms& t, double longest, double period) {
  const double pace = std::max(t.update, t.scoring);
  const double q = t.latency(t.scoring / std::max(period, pace));
  return std::max(pace, (longest + q + t.update + t.publish) / (t.eta + 1));
}

/// Separate rollout cards, eta >= 1. Each publication admits B groups at once, so the period is
/// that of a burst, and K is the smallest value that keeps up with least(). The longest response
/// has eta + 1 periods, because its group must be trained while version v0 + eta is updated. If
/// some b(y) exceeds the slots or the cache, these are always full instead:
///   period >= fresh * held / full + prefill,  longest * step(full) + prefill
/// where a response holds its slot for mean length * step(full), and until its end is reported.
/// Mean staleness: admission keeps B groups outstanding per version for eta + 1 versions, so a
/// batch is eta old. If slots limit, a response is in its slot for slots / fresh periods (Little's
/// law), its group longer by the mean excess of the longest of G; then it waits for its scores and
/// for half a period. The staleness is the number of versions published in that time, at most eta.
SteadyState with_own_cards(const SteadyTerms& t) {
  SteadyState out;
  const Lifetimes& d = t.batch;
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
  out.bottleneck = Bottleneck::LongAnswers;
  const double step = t.step(t.full, t.context());
  out.seconds_per_step = b.fits ? b.seconds / high : step;
  if (!b.fits) {
    const double full = t.fresh * t.held() / t.full + t.prefill;
    out.seconds_per_update = std::max(full, least(t, d.longest * step + t.prefill, full));
    if (full >= out.seconds_per_update)
      out.bottleneck = Bottleneck::Slots;
  }
  const double p = out.seconds_per_update;
  out.decode_seconds = b.fits ? std::min(b.seconds, p - t.prefill) : p - t.prefill;
  if (p <= t.update * 1.001)
    out.bottleneck = Bottleneck::Update;
  else if (p <= t.scoring * 1.001)
    out.bottleneck = Bottleneck::Reference;
  out.staleness_mean = t.eta;
  if (out.bottleneck == Bottleneck::Slots) {
    const double response = t.used / t.fresh * p;  // Little's law
    const double group = response + (d.group_end - d.mean) * step;
    const double there = group + t.prefill + t.latency(t.scoring / p) + p / 2;
    const double wait = p - t.update - t.publish;
    out.staleness_mean = std::clamp((there - wait) / p + 0.5, 0.0, t.eta);
  }
  return out;
}

/// Seconds until the last of `n` responses per replica that start together ends.
Generation alone(const SteadyTerms& t, double n) {
  const Burst b = burst(t, n, t.batch.longest);
  return b.fits ? Generation{b.seconds, b.seconds / t.batch.longest} : drain(t, n, 0);
}

/// Separate rollout cards, eta = 0: generation until the last response ends, then the rest of the
/// scoring (half a pass in progress, then one more), then the update and its publication.
SteadyState synchronous(const SteadyTerms& t) {
  SteadyState out;
  const Generation all = alone(t, t.fresh);
  out.decode_seconds = all.seconds;
  out.seconds_per_step = all.step;
  const double generation = out.decode_seconds + t.prefill;
  const double scoring = t.report + t.scored * 1.5 + std::max(0.0, t.scoring - generation);
  out.seconds_per_update = generation + scoring + t.update + t.publish;
  out.bottleneck = Bottleneck::LongAnswers;
  return out;
}

/// A generation turn that feeds `batches` updates.
struct Turn {
  Generation generation;
  double whole = 0;  ///< Complete batches at its end, out of eta + 1.
};

/// Generation time if slots or cache are full at first: responses left from the previous turn
/// continue too, and the longest response needs at most (eta + 1) / batches turns.
Generation full_turn(const SteadyTerms& t, double fresh, double left, double batches) {
  const Lifetimes& d = t.batch;
  const double longest = d.longest * batches / (t.eta + 1) * t.step(t.full, t.context());
  Generation out = drain(t, fresh + left * d.residual / d.mean, left);
  out.seconds = std::max(out.seconds, left > 0 ? longest : 0);
  return out;
}

Turn turn(const SteadyTerms& t, double batches, double left) {
  const Lifetimes& d = t.batch;
  const double fresh = batches * t.fresh;
  // Left at the end of a turn with K tokens: all older bursts, from there on.
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
  // No response may need more turns than the bound allows.
  const double steps = std::max(high, d.longest * batches / (t.eta + 1));
  const Burst b = burst(t, fresh, steps);
  return {b.fits ? Generation{b.seconds, b.seconds / steps} : full_turn(t, fresh, left, batches),
          t.eta + 1 - unfinished};
}

enum class Reference { Elsewhere, InTurn };

/// Time-shared roles. A turn admits k batches and generates until return_share of the slots is
/// left. With bursts of k batches, K is the smallest value that leaves no more than that, and at
/// least longest * k / (eta + 1), because no response may need more turns. k is the largest number
/// of complete batches by then, out of the eta + 1 outstanding ones. The period is (generation + k
/// prefills + switches) / k + update, plus the reference's pass if it is time-shared too. k batches
/// of one turn are eta - (k - 1) / 2 old on average.
SteadyState in_turns(const SteadyTerms& t, Reference reference) {
  SteadyState out;
  const double left = t.eta > 0 ? t.return_share * t.slots : 0;
  double batches = std::floor(t.eta + 1);
  Turn at = turn(t, batches, left);
  while (batches > 1 && at.whole < batches - 1e-9)
    at = turn(t, --batches, left);
  const double generation = at.generation.seconds + t.prefill * batches;
  const double each = (generation + t.to_rollout + t.to_training) / batches + t.update;
  const double after = t.report + t.scored * 1.5 + std::max(0.0, t.scoring * batches - generation);
  out.seconds_per_update = reference == Reference::InTurn
                               ? each + t.scoring
                               : std::max(each + after / batches, t.scoring);
  out.decode_seconds = at.generation.seconds / batches;
  out.seconds_per_step = at.generation.step;
  out.staleness_mean = std::max(0.0, t.eta - (batches - 1) / 2);
  out.bottleneck = Bottleneck::Turns;
  return out;
}

/// Separate rollout cards that also use the trainer's cards while these are idle: the engines grow
/// by the share of a period in which the trainer is idle, found by iteration.
SteadyState with_lent_cards(SteadyTerms t, double lent_per_own) {
  const double fresh = t.fresh;
  SteadyState out = t.eta > 0 ? with_own_cards(t) : synchronous(t);
  for (int i = 0; i < 4; ++i) {
    const double p = out.seconds_per_update;
    const double idle = std::max(0.0, p - t.update - t.to_rollout - t.to_training) / p;
    t.fresh = fresh / (1 + lent_per_own * idle);
    out = t.eta > 0 ? with_own_cards(t) : synchronous(t);
    out.lent_seconds = std::min(out.decode_seconds, idle * out.seconds_per_update);
  }
  return out;
}

}  // namespace

SteadyState solve_steady_state(const SteadyTerms& t, const orchestrator::PlacementConfig& cards) {
  const actors::PlacementTraits& mode = traits_of(cards.mode);
  if (mode.alternates())
    return in_turns(t, mode.shares_reference ? Reference::InTurn : Reference::Elsewhere);
  if (mode.lends()) {
    return with_lent_cards(t,
                           static_cast<double>(std::ssize(cards.trainer)) /
                               static_cast<double>(std::ssize(cards.rollout)));
  }
  return t.eta > 0 ? with_own_cards(t) : synchronous(t);
}

}  // namespace temper::study::steady
