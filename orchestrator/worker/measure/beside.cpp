// Slowdown of engines when both cores work: a rollout engine and a reference, in turn, on the first
// core, and a trainer on the last one, as in a run; relative to each one alone.
#include "actors/runtime/process.hpp"
#include "orchestrator/worker/measure/bench.hpp"
#include "orchestrator/worker/roles/engines.hpp"

#include <atomic>
#include <functional>
#include <thread>

namespace temper::orchestrator {
namespace {

constexpr int kCycles = 9;
constexpr int kRounds = 4;

struct RoundTimes {
  Times decode, reference, update;
};

class Engines {
 public:
  static Result<std::unique_ptr<Engines>> make(Bench& bench) {
    const actors::RoleConfig role = bench.role(actors::RoleKind::Trainer, bench.config());
    auto engines = std::unique_ptr<Engines>(new Engines(bench));
    TEMPER_TRY(engines->engine_, bench.make_engine(std::nullopt));
    TEMPER_TRY(engines->trainer_, make_trainer(bench, role));
    TEMPER_TRY(engines->reference_, make_reference(bench, role));
    engines->batch_ = train_batch(bench);
    for (const trainer::TrainSample& s : engines->batch_)
      engines->asked_.push_back({s.prompt, s.response});
    return engines;
  }

  /// Each alone, on its core.
  void alone(RoundTimes& times) {
    std::jthread([&] {
      pin(cores_.front());
      repeat([&](Keep keep) {
        time(times.decode, keep, [&] { generate(); });
        time(times.reference, keep, [&] { score(); });
      });
    }).join();
    std::jthread([&] {
      pin(cores_.back());
      repeat([&](Keep keep) { time(times.update, keep, [&] { train(); }); });
    }).join();
  }

  /// Both cores at once.
  void together(RoundTimes& times) {
    std::atomic<bool> stop = false;
    std::jthread first([&] {
      pin(cores_.front());
      for (Keep keep = Keep::No; !stop; keep = Keep::Yes) {
        time(times.decode, keep, [&] { generate(); });
        time(times.reference, keep, [&] { score(); });
      }
    });
    std::jthread last([&] {
      pin(cores_.back());
      repeat([&](Keep keep) { time(times.update, keep, [&] { train(); }); });
      stop = true;
    });
    last.join();
    first.join();
  }

  Status status() const {
    if (failed_)
      return Error{ErrorCode::Internal, "an engine failed while another one ran"};
    return {};
  }

 private:
  explicit Engines(Bench& bench) : bench_(bench), cores_(actors::usable_cores()) {}

  void generate() {
    bench_.add(*engine_, bench_.config().rollout.concurrency, bench_.per_group());
    note(run_until_idle(*engine_).has_value());
  }
  void score() { note(reference_->score(asked_).has_value()); }
  void train() { note(trainer_->update(batch_).has_value()); }
  void pin(std::uint32_t core) { note(actors::pin_to_cores({&core, 1}).has_value()); }
  void note(bool well) {
    if (!well)
      failed_ = true;
  }
  enum class Keep { No, Yes };  ///< The first round of a thread is a warm-up.
  static void repeat(const std::function<void(Keep)>& round) {
    for (int i = 0; i <= kRounds; ++i)
      round(i == 0 ? Keep::No : Keep::Yes);
  }
  void time(Times& times, Keep keep, const std::function<void()>& work) {
    const Time begin = bench_.clock().now();
    work();
    if (keep == Keep::Yes)
      times.add(micro(bench_.clock().now() - begin));
  }

  Bench& bench_;
  const std::vector<std::uint32_t> cores_;
  std::unique_ptr<rollout::Engine> engine_;
  std::unique_ptr<trainer::Engine> trainer_;
  std::unique_ptr<actors::ReferenceEngine> reference_;
  std::vector<trainer::TrainSample> batch_;
  std::vector<actors::ScoringRequest> asked_;
  std::atomic<bool> failed_ = false;
};

}  // namespace

Status measure_beside(Bench& bench) {
  if (actors::usable_cores().size() < 2)
    return {};
  use_threads(1);
  TEMPER_TRY(const auto engines, Engines::make(bench));
  // One ratio per cycle, because the speed of a machine drifts.
  RoundTimes ratios;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    RoundTimes alone, together;
    engines->alone(alone);
    engines->together(together);
    ratios.decode.add(together.decode.median() / alone.decode.median());
    ratios.reference.add(together.reference.median() / alone.reference.median());
    ratios.update.add(together.update.median() / alone.update.median());
  }
  bench.note("decode_slowdown", {}, ratios.decode);
  bench.note("reference_slowdown", {}, ratios.reference);
  bench.note("update_slowdown", {}, ratios.update);
  return engines->status();
}

}  // namespace temper::orchestrator
