#include "orchestrator/cli/plan_command.hpp"

#include "core/files.hpp"
#include "orchestrator/explore/train_plan_report.hpp"
#include "sim_hw/plan/train_advice.hpp"
#include "sim_hw/predict/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

namespace temper::orchestrator {
namespace {

using sim_hw::MeasuredAs;

constexpr MeasuredAs kTraining[] = {
    {"train_iteration", "time"}, {"train_step", "time"}, {"rl_iteration", "update"}};

Status plan_training(const PlanOptions& options, const sim_hw::Params& params, std::ostream& out) {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  TEMPER_TRY(const std::string hardware_name, params.text("hardware"));
  TEMPER_TRY(const std::string model_name, params.text("model"));
  TEMPER_TRY(const sim_hw::HardwareSpec* hardware, catalog.hardware(hardware_name));
  TEMPER_TRY(const sim_hw::ModelSpec* model, catalog.model(model_name));
  TEMPER_TRY(const std::int64_t cards, params.integer("cards", hardware->cards()));
  if (cards < 1 || cards > 1'000'000)
    return invalid_input(fmt::format("cards={}: must be 1 to 1000000", cards));
  sim_hw::TrainProblem problem(*model, *hardware, cards);
  TEMPER_TRY(const sim_hw::TrainPlanRequest request,
             sim_hw::train_plan_request(params, *hardware, problem));
  TrainPlanReport report{problem,
                         hardware->name,
                         cards,
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
  TEMPER_TRY(report.spread, sim_hw::error_spread(catalog, *hardware, kTraining));
  if (!options.svg.empty())
    TEMPER_TRY_STATUS(write_file_atomically(options.svg, train_plan_svg(report)));
  out << (options.json ? train_plan_json(report) : train_plan_text(report));
  return {};
}

Status plan(const PlanOptions& options, std::ostream& out) {
  TEMPER_TRY(const sim_hw::Params params, sim_hw::Params::from_words(options.words));
  TEMPER_TRY(const std::string task, params.text("task"));
  if (task == "train")
    return plan_training(options, params, out);
  return invalid_input(fmt::format("task={}: expected train", task));
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
