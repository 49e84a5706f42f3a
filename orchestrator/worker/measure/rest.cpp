#include "actors/runtime/process.hpp"
#include "actors/shared_memory/shared_buffer.hpp"
#include "actors/task/verifier.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/worker/measure/bench.hpp"
#include "orchestrator/worker/roles/engines.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Times the operations between two calls of lap().
class Laps {
 public:
  explicit Laps(const RealClock& clock) : clock_(clock), at_(clock.now()) {}
  void lap(const std::string& what) {
    times[what].add(micro(clock_.now() - at_));
    skip();
  }
  /// Starts the next interval; the time since the last lap is not counted.
  void skip() { at_ = clock_.now(); }
  std::map<std::string, Times> times;

 private:
  const RealClock& clock_;
  Time at_;
};

/// Times loading new weights, and the steps of a role switch.
Status measure_weights(Bench& bench) {
  const actors::RoleConfig role = bench.role(actors::RoleKind::Trainer, bench.config());
  TEMPER_TRY(const auto trainer, make_trainer(bench, role));
  TEMPER_TRY(const auto engine, bench.make_engine(std::nullopt));
  const auto batch = train_batch(bench);
  TEMPER_TRY(const TemporaryFolder scratch, TemporaryFolder::create("temper-measure-"));
  Laps laps(bench.clock());
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const PolicyVersion version(static_cast<std::uint64_t>(repeat) + 1);
    TEMPER_TRY(auto writer, actors::SharedBuffer::Writer::create(version));
    TEMPER_TRY_STATUS(trainer->publish([&](auto part) { return writer.append(part); }));
    TEMPER_TRY(const auto shared, std::move(writer).finish());
    laps.skip();
    TEMPER_TRY(const auto mapped, actors::MappedBuffer::open(shared.handle()));
    TEMPER_TRY_STATUS(engine->stage(version, mapped.bytes()));
    laps.lap("stage");
    TEMPER_TRY_STATUS(engine->commit(version));
    laps.lap("commit");
    bench.add(*engine, bench.config().rollout.concurrency, bench.per_group());
    TEMPER_TRY_STATUS(run_until_idle(*engine));
    laps.skip();
    engine->interrupt();
    laps.lap("interrupt");
    TEMPER_TRY_STATUS(engine->free_kv());
    laps.lap("free_kv");
    TEMPER_TRY_STATUS(engine->free_weights());
    laps.lap("free_weights");
    TEMPER_TRY_STATUS(engine->allocate_kv());
    laps.lap("allocate_kv");
    TEMPER_TRY([[maybe_unused]] const auto updated, trainer->update(batch));
    laps.skip();
    TEMPER_TRY_STATUS(trainer->offload());
    laps.lap("offload");
    TEMPER_TRY_STATUS(trainer->onload());
    laps.lap("onload");
    TEMPER_TRY_STATUS(trainer->save(scratch.path()));
    laps.lap("save");
    TEMPER_TRY([[maybe_unused]] const auto made, make_reference(bench, role));
    laps.lap("reference_load");
  }
  for (const auto& [what, times] : laps.times)
    bench.note(what, {}, times);
  return {};
}

Status measure_reward(Bench& bench) {
  TEMPER_TRY(const auto verifier, actors::make_verifier(bench.config().verifier));
  for (const std::int64_t n : {std::int64_t{1}, bench.per_group(), std::int64_t{64}}) {
    Times times;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      std::vector<actors::JudgeRequest> requests;
      for (std::int64_t i = 0; i < n; ++i) {
        const actors::Problem problem = bench.prompts().train(static_cast<std::uint64_t>(i));
        requests.push_back({problem.prompt, problem.answer, problem.answer});
      }
      const Time begin = bench.clock().now();
      const std::vector<actors::Verdict> verdicts = verifier->judge(requests);
      if (verifier->gave_up())
        return invalid_input("the verifier has not returned a single reward: " +
                             verdicts.front().failure);
      times.add(micro(bench.clock().now() - begin));
    }
    bench.note("reward", {static_cast<double>(n)}, times);
  }
  return {};
}

}  // namespace

Status measure_rest(Bench& bench) {
  TEMPER_TRY([[maybe_unused]] const auto role,
             bench.make_role(actors::RoleKind::Rollout, bench.config()));
  TEMPER_TRY_STATUS(measure_weights(bench));
  return measure_reward(bench);
}

}  // namespace temper::orchestrator
