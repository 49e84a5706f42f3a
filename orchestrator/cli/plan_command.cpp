#include "orchestrator/cli/plan_command.hpp"

#include "core/files.hpp"
#include "orchestrator/explore/rollout_plan_report.hpp"
#include "orchestrator/explore/train_plan_report.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/plan/rollout_request.hpp"
#include "sim_hw/plan/train_advice.hpp"
#include "sim_hw/predict/catalog.hpp"

#include <fmt/format.h>

#include <ostream>

namespace temper::orchestrator {
namespace {

using sim_hw::MeasuredAs;

constexpr MeasuredAs kTraining[] = {
    {"train_iteration", "time"}, {"train_step", "time"}, {"rl_iteration", "update"}};

constexpr MeasuredAs kRollout[] = {{"decode_step", "time"}, {"rl_iteration", "rollout"}};

struct Subject {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  const sim_hw::HardwareSpec* hardware = nullptr;
  const sim_hw::ModelSpec* model = nullptr;
  std::int64_t cards = 0;
};

Status read_subject(const sim_hw::Params& params, Subject& subject) {
  TEMPER_TRY(const std::string hardware, params.text("hardware"));
  TEMPER_TRY(const std::string model, params.text("model"));
  TEMPER_TRY(subject.hardware, subject.catalog.hardware(hardware));
  TEMPER_TRY(subject.model, subject.catalog.model(model));
  TEMPER_TRY(subject.cards, sim_hw::cards_of(params, *subject.hardware));
  return {};
}

/// The plot to its file, the rest to `out`.
template <class Report>
Status show(const PlanOptions& options,
            const Report& report,
            std::string (*text)(const Report&),
            std::string (*svg)(const Report&),
            std::ostream& out) {
  if (!options.svg.empty())
    TEMPER_TRY_STATUS(write_file_atomically(options.svg, svg(report)));
  out << text(report);
  return {};
}

Status plan_training(const PlanOptions& options, const sim_hw::Params& params, std::ostream& out) {
  Subject subject;
  TEMPER_TRY_STATUS(read_subject(params, subject));
  sim_hw::TrainProblem problem(*subject.model, *subject.hardware, subject.cards);
  TEMPER_TRY(const sim_hw::TrainPlanRequest request,
             sim_hw::train_plan_request(params, *subject.hardware, problem));
  TrainPlanReport report{problem,
                         subject.hardware->name,
                         subject.cards,
                         sim_hw::search_train(problem, request.space, request.shape, {}),
                         {},
                         {}};
  if (report.search.best.empty())
    return sim_hw::no_plan(problem, request, report.search);
  if (request.max_seconds && report.search.best.front().total() > *request.max_seconds)
    return sim_hw::too_slow(problem, request, report.search.best.front());
  if (params.has("compare")) {
    TEMPER_TRY(const std::string layout, params.text("compare"));
    TEMPER_TRY(report.compared, sim_hw::plan_with(problem, request, layout));
  }
  TEMPER_TRY(report.spread, sim_hw::error_spread(subject.catalog, *subject.hardware, kTraining));
  return show(
      options, report, options.json ? train_plan_json : train_plan_text, train_plan_svg, out);
}

Status plan_rollout(const PlanOptions& options, const sim_hw::Params& params, std::ostream& out) {
  Subject subject;
  TEMPER_TRY_STATUS(read_subject(params, subject));
  sim_hw::RolloutProblem problem(*subject.model, *subject.hardware, subject.cards);
  TEMPER_TRY(const sim_hw::RolloutPlanRequest request,
             sim_hw::rollout_plan_request(params, ".", problem));
  RolloutPlanReport report{
      problem, subject.cards, sim_hw::search_rollout(problem, request.space), {}, {}};
  if (report.search.best.empty())
    return sim_hw::no_plan(problem, request, report.search);
  if (params.has("compare")) {
    TEMPER_TRY(const std::string layout, params.text("compare"));
    TEMPER_TRY(report.compared, sim_hw::plan_with(problem, request, layout));
  }
  TEMPER_TRY(report.spread, sim_hw::error_spread(subject.catalog, *subject.hardware, kRollout));
  return show(
      options, report, options.json ? rollout_plan_json : rollout_plan_text, rollout_plan_svg, out);
}

Status plan(const PlanOptions& options, std::ostream& out) {
  TEMPER_TRY(const sim_hw::Params params, sim_hw::Params::from_words(options.words));
  TEMPER_TRY(const std::string task, params.text("task"));
  if (task == "train")
    return plan_training(options, params, out);
  if (task == "rollout")
    return plan_rollout(options, params, out);
  if (task == "rl") {
    return invalid_input(
        "task=rl: how to split cards between both sides is what `temper tune CONFIG` searches");
  }
  return invalid_input(fmt::format("task={}: expected train or rollout", task));
}

}  // namespace

int run_plan(const PlanOptions& options, std::ostream& out, std::ostream& err) {
  const Status status = plan(options, out);
  if (status)
    return 0;
  err << "temper: " << status.error().context << '\n';
  return 1;
}

}  // namespace temper::orchestrator
