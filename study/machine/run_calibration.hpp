// A model of the machine from a run that was recorded on it: what its own engines took, by its own
// log.
//
// The log has when actors were busy, not why a step took as long: decode steps without a pause
// between them are one span. So each kind of work has one constant, in proportion to what was done
// (decode: tokens; prefill, update, reference: rows; reward: responses), or the shape of a
// calibration that is given and one factor. Staging, switches, checkpoints and starts are the means
// of their own durations; what a response costs in a message is the median time from a command to
// train to its start, shared by both ends. Levels are then set so that the run, decided again with
// unchanged settings, is busy with each kind of work as long as the record says
// (study/forecast/whatif.hpp); rates and waits come out as they may.
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

/// What a log says of the work of a run. feed() it every record.
class RunRecord {
 public:
  void feed(const orchestrator::Record& record);

  /// As recorded; those that are not, in turn the lengths that are. Requires: something was
  /// generated.
  Tokens prompt(GroupId group) const;
  Tokens response(ResponseId response) const;
  bool has_lengths() const { return !known_responses_.empty(); }
  /// Those that ended in the run.
  const std::map<ResponseId, std::int64_t>& finished() const { return finished_; }

  /// In proportion to the work, for every number of threads that a role of the run had.
  MachineModel calibration(const orchestrator::PipelineConfig& config) const;
  /// Seconds that actors were busy with each, added up over all of them.
  const std::map<actors::CardState, double>& spans() const { return spans_; }

 private:
  GroupId group_of(ResponseId response) const { return GroupId(response.value() / per_group_); }
  void note_time(const orchestrator::Record& record);
  void note(const orchestrator::event::Generated& e);
  void note(const orchestrator::event::Activity& e);
  void note(const orchestrator::command::Train& c, Time now);

  std::uint64_t per_group_ = 1;
  std::vector<orchestrator::ActorSpec> actors_;
  std::map<ResponseId, std::int64_t> so_far_, finished_;
  std::map<GroupId, std::int64_t> prompts_;
  std::vector<std::int64_t> known_responses_, known_prompts_;

  // Work, and the time that it took.
  std::map<actors::CardState, double> spans_;
  double generated_ = 0, prompt_rows_ = 0, update_rows_ = 0, responses_ = 0, batch_ = 0;
  std::map<actors::SwitchAction, std::vector<double>> switches_us_;
  std::vector<double> stage_us_, save_us_, checkpoint_us_, ready_us_, export_us_, to_train_us_;

  // Since when something is waited for.
  std::map<ActorId, Time> staging_;
  std::optional<Time> train_asked_, save_asked_, saved_;
};

/// Of the run in that folder, however it ended. Errors: it holds no run; its log cannot be read;
/// nothing was generated in it.
Result<RunRecord> read_run_record(const std::filesystem::path& run);

/// Times of engines and of the reward, each kind by a factor.
void scale(MachineModel& calibration, const std::map<actors::CardState, double>& factors);

}  // namespace temper::study
