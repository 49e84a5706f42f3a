// A model of the machine from a recorded run: the times of its engines from its own log.
//
// The log shows when actors were busy, but not why a step took its time: decode steps without a
// pause between them are one span. So each kind of work has one constant, proportional to the work
// (decode: tokens; prefill, update, reference: rows; reward: responses), or the shape of a given
// calibration and one factor. Staging, switches, checkpoints and starts are means of their
// durations. The message cost of a response is the median time from a train command to its start,
// split equally between both ends. Levels are then adjusted so that the run, rescheduled with
// unchanged settings, spends as much time on each kind of work as the record says
// (study/forecast/whatif.hpp); rates and waits are not adjusted.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/record/event_log.hpp"
#include "study/machine/calibration.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace temper::study {

/// The work of a run according to its log. Call feed() for every record.
class RunRecord {
 public:
  void feed(const orchestrator::Record& record);

  /// Recorded lengths; groups and responses without one reuse the known lengths in turn. Requires:
  /// the run generated at least one response.
  Tokens prompt(GroupId group) const;
  Tokens response(ResponseId response) const;
  bool has_lengths() const { return !known_responses_.empty(); }
  /// Responses that ended in the run, with their lengths.
  const std::map<ResponseId, std::int64_t>& finished() const { return finished_; }
  GroupId group_of(ResponseId response) const;

  /// Constants proportional to the work, for every thread count of the run's roles.
  MachineModel calibration(const orchestrator::PipelineConfig& config) const;
  /// Busy seconds by kind of work, summed over all actors.
  const std::map<actors::CardState, double>& spans() const { return spans_; }

 private:
  void note_time(const orchestrator::Record& record);
  void note(const orchestrator::event::Generated& e);
  void note(const orchestrator::event::Activity& e);
  void note(const orchestrator::command::Train& c, Time now);

  std::uint64_t per_group_ = 1, per_evaluated_group_ = 1;
  std::vector<orchestrator::ActorSpec> actors_;
  std::map<ResponseId, std::int64_t> so_far_, finished_;
  std::map<GroupId, std::int64_t> prompts_;
  std::vector<std::int64_t> known_responses_, known_prompts_;

  // Work, and its time.
  std::map<actors::CardState, double> spans_;
  double generated_ = 0, prompt_rows_ = 0, update_rows_ = 0, responses_ = 0, batch_ = 0;
  std::map<actors::SwitchAction, std::vector<double>> switches_us_;
  std::vector<double> stage_us_, save_us_, checkpoint_us_, ready_us_, export_us_, to_train_us_;

  // Start times of pending operations.
  std::map<ActorId, Time> staging_;
  std::optional<Time> train_asked_, save_asked_, saved_;
};

/// Reads the run in that folder, complete or not. Errors: not a run folder; its log cannot be read;
/// the run generated nothing.
Result<RunRecord> read_run_record(const std::filesystem::path& run);

/// Scales the times of engines and of the reward, each kind by its factor.
void scale(MachineModel& calibration, const std::map<actors::CardState, double>& factors);

}  // namespace temper::study
