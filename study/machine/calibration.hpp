// Measured times of this machine's engines, weights, messages and processes, from `temper measure`.
// machine_host.hpp simulates runs with them in virtual time.
//
// Times of a single thread assume exclusive use of its core and of the machine; a team of threads
// uses all of its cores. Costs that depend on the work are sums of terms, each a count times a
// constant:
//   decode     step(b) + context(b) x cached tokens of all b running responses; linear in b between
//              the measured b, and in proportion to b above the largest
//   prefill    step + row x computed rows + copy x responses whose prompt another one computed
//   update     update + minibatch x minibatches + row x rows + token x response tokens
//   reference  pass + row x rows
//   reward     call + response x responses
//   messages   message x messages + response x responses in them, sent and received, per process
// Rows: computed input tokens. A prompt that responses share counts once; the last token of a
// response does not count (actors/policy/pack.hpp).
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/simulation/length_config.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::study {

inline constexpr double kMicro = 1e-6;  ///< Seconds per microsecond, the unit of the fields below.

/// Microseconds of a duration.
inline double micro(Duration d) {
  return static_cast<double>(d.count()) * 1e-3;
}

struct DecodeTimes {
  std::int32_t running = 1;
  double step_us = 0;
  double context_ns = 0;
};

struct PrefillTimes {
  double step_us = 0, row_us = 0, copy_us = 0;
  /// Extra time of the first response in a slot after its cache was allocated: page faults.
  double touch_us = 0;
};

struct UpdateTimes {
  double update_us = 0, minibatch_us = 0, row_us = 0, token_us = 0;
  double first_us = 0;    ///< Extra time of the first update.
  double resumed_us = 0;  ///< Extra time after the optimizer was offloaded.
};

struct ReferenceTimes {
  double pass_us = 0, row_us = 0;
  double first_us = 0;  ///< Extra time of the first pass.
};

/// Engines with this number of compute threads.
struct EngineTimes {
  std::int32_t threads = 1;
  std::vector<DecodeTimes> decode;  ///< In ascending order of `running`.
  PrefillTimes prefill;
  UpdateTimes update;
  ReferenceTimes reference;
};

struct WeightTimes {
  double export_us = 0;  ///< Trainer: exports an image and shares it.
  double stage_us = 0;  ///< Engine: opens, loads and checks an image, concurrently with generation.
  double commit_us = 0;
  double save_us = 0;  ///< Trainer: writes a checkpoint.
};

struct SwitchTimes {
  double interrupt_us = 0, free_kv_us = 0, free_weights_us = 0, allocate_kv_us = 0;
  double offload_us = 0, onload_us = 0;
  double reference_load_us = 0;  ///< Loading a new reference.
};

struct RewardTimes {
  double call_us = 0, response_us = 0;
};

/// CPU time of a process for the messages that it sends and receives.
struct MessageTimes {
  double message_us = 0, response_us = 0;
};

struct ProcessTimes {
  MessageTimes orchestrator, rollout, reference, reward, trainer;
  double hop_us = 0;         ///< Transit time between processes, in addition to their CPU time.
  double start_us = 0;       ///< CPU time of a worker until it is ready.
  double checkpoint_us = 0;  ///< Orchestrator: its part of a checkpoint.
};

/// Slowdown while all other cores work too (shared memory, clock).
struct Slowdowns {
  double decode = 1, update = 1, reference = 1, other = 1;
};

/// Method and quality of a fit.
struct MachineFit {
  std::string constants;
  std::string how;
  std::int64_t samples = 0;
  double spread = 0;  ///< Half the range of repeats over their median; mean over samples.
  double error = 0;   ///< Mean relative error of the fit; 0 if the constant is a median.
};

struct MachineModel {
  std::string measured;  ///< Date and time of the measurement.
  std::string cpu;
  std::int32_t cores = 1;
  std::string config;         ///< Name of the pipeline whose engines were measured.
  actors::ModelConfig model;  ///< Model of the policy.
  std::vector<EngineTimes> engines;
  WeightTimes weights;
  SwitchTimes switches;
  RewardTimes reward;
  ProcessTimes processes;
  Slowdowns slowdowns;
  actors::LengthConfig response;  ///< Response lengths of the measured policy.
  std::vector<MachineFit> fits;
  /// Largest share of the cores' time that other programs took while a part was measured
  /// (other_work.hpp).
  double others = 0;

  /// Null if this number of threads was not measured.
  const EngineTimes* with_threads(std::size_t threads) const;
};

/// Seconds of one step. Requires: at least one measured batch size; running >= 1.
double decode_seconds(const EngineTimes& engine, std::int64_t running, std::int64_t context);
double prefill_seconds(const EngineTimes& engine, std::int64_t rows, std::int64_t copies);
struct UpdateWork {
  std::int64_t minibatches = 1, rows = 0, tokens = 0;
};
double update_seconds(const EngineTimes& engine, const UpdateWork& work);
double reference_seconds(const EngineTimes& engine, std::int64_t rows);

/// Errors: the file cannot be read; invalid fields (each with its place); missing times that a
/// forecast needs.
Result<MachineModel> load_machine_model(const std::filesystem::path& file);
/// A warning if other programs took so much time that the measured times may be too long; else
/// empty.
std::string busy_note(const MachineModel& calibration);
Status save_machine_model(const MachineModel& calibration,
                          const std::filesystem::path& file,
                          const std::string& command);

void describe(auto& v, DecodeTimes& t) {
  v.field(1, "running", t.running, {.doc = "Responses in the batch.", .min = 1});
  v.field(2, "step_us", t.step_us, {.doc = "Time of a step."});
  v.field(3, "context_ns", t.context_ns, {.doc = "Time per cached token in a step."});
}
void describe(auto& v, PrefillTimes& t) {
  v.field(1, "step_us", t.step_us);
  v.field(2, "row_us", t.row_us);
  v.field(3, "copy_us", t.copy_us);
  v.field(4, "touch_us", t.touch_us);
}
void describe(auto& v, UpdateTimes& t) {
  v.field(1, "update_us", t.update_us);
  v.field(2, "minibatch_us", t.minibatch_us);
  v.field(3, "row_us", t.row_us);
  v.field(4, "token_us", t.token_us);
  v.field(5, "first_us", t.first_us);
  v.field(6, "resumed_us", t.resumed_us);
}
void describe(auto& v, ReferenceTimes& t) {
  v.field(1, "pass_us", t.pass_us);
  v.field(2, "row_us", t.row_us);
  v.field(3, "first_us", t.first_us);
}
void describe(auto& v, EngineTimes& t) {
  v.field(1, "threads", t.threads, {.doc = "Compute threads.", .min = 1});
  v.field(2, "decode", t.decode);
  v.field(3, "prefill", t.prefill);
  v.field(4, "update", t.update);
  v.field(5, "reference", t.reference);
}
void describe(auto& v, WeightTimes& t) {
  v.field(1, "export_us", t.export_us);
  v.field(2, "stage_us", t.stage_us);
  v.field(3, "commit_us", t.commit_us);
  v.field(4, "save_us", t.save_us);
}
void describe(auto& v, SwitchTimes& t) {
  v.field(1, "interrupt_us", t.interrupt_us);
  v.field(2, "free_kv_us", t.free_kv_us);
  v.field(3, "free_weights_us", t.free_weights_us);
  v.field(4, "allocate_kv_us", t.allocate_kv_us);
  v.field(5, "offload_us", t.offload_us);
  v.field(6, "onload_us", t.onload_us);
  v.field(7, "reference_load_us", t.reference_load_us);
}
void describe(auto& v, RewardTimes& t) {
  v.field(1, "call_us", t.call_us);
  v.field(2, "response_us", t.response_us);
}
void describe(auto& v, MessageTimes& t) {
  v.field(1, "message_us", t.message_us);
  v.field(2, "response_us", t.response_us);
}
void describe(auto& v, ProcessTimes& t) {
  v.field(1, "orchestrator", t.orchestrator);
  v.field(2, "rollout", t.rollout);
  v.field(3, "reference", t.reference);
  v.field(4, "reward", t.reward);
  v.field(5, "trainer", t.trainer);
  v.field(6, "hop_us", t.hop_us);
  v.field(7, "start_us", t.start_us);
  v.field(8, "checkpoint_us", t.checkpoint_us);
}
void describe(auto& v, Slowdowns& s) {
  v.field(1, "decode", s.decode, {.doc = "Slowdown of a rollout engine.", .min = 0.5});
  v.field(2, "update", s.update, {.doc = "Slowdown of a trainer.", .min = 0.5});
  v.field(3, "reference", s.reference, {.doc = "Slowdown of a reference.", .min = 0.5});
  v.field(4, "other", s.other, {.doc = "Slowdown of other work.", .min = 0.5});
}
void describe(auto& v, MachineFit& f) {
  v.field(1, "constants", f.constants);
  v.field(2, "how", f.how);
  v.field(3, "samples", f.samples);
  v.field(4, "spread", f.spread);
  v.field(5, "error", f.error);
}
void describe(auto& v, MachineModel& c) {
  v.field(1, "measured", c.measured, {.doc = "Date and time of the measurement."});
  v.field(2, "cpu", c.cpu, {.doc = "Processor of the machine."});
  v.field(3, "cores", c.cores, {.doc = "Cores of the machine.", .min = 1});
  v.field(4, "config", c.config, {.doc = "Name of the pipeline whose engines were measured."});
  v.field(5, "model", c.model, {.doc = "Model of the policy."});
  v.field(6, "engines", c.engines);
  v.field(7, "weights", c.weights);
  v.field(8, "switches", c.switches);
  v.field(9, "reward", c.reward);
  v.field(10, "processes", c.processes);
  v.field(11, "slowdowns", c.slowdowns);
  v.field(12, "response", c.response, {.doc = "Response lengths of the policy."});
  v.field(13, "fits", c.fits);
  v.field(14,
          "others",
          c.others,
          {.doc = "Share of the cores' time that other programs took during the measurement.",
           .min = 0.0,
           .max = 1.0});
}

}  // namespace temper::study
