#include "study/machine/calibration.hpp"

#include "actors/simulation/lengths.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"
#include "study/machine/other_work.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::study {
namespace {

constexpr double kNano = 1e-9;

double d(std::int64_t n) {
  return static_cast<double>(n);
}

}  // namespace

const EngineTimes* MachineModel::with_threads(std::size_t threads) const {
  const auto found =
      std::ranges::find(engines, static_cast<std::int32_t>(threads), &EngineTimes::threads);
  return found == engines.end() ? nullptr : &*found;
}

double decode_seconds(const EngineTimes& engine, std::int64_t running, std::int64_t context) {
  const std::vector<DecodeTimes>& points = engine.decode;
  const auto above =
      std::ranges::find_if(points, [&](const DecodeTimes& p) { return p.running >= running; });
  const auto at = [&](const DecodeTimes& p) {
    return p.step_us * kMicro + p.context_ns * kNano * d(context);
  };
  if (above == points.begin())
    return at(*above);
  const DecodeTimes& below = *std::prev(above);
  if (above == points.end()) {
    const double more = below.step_us * d(running) / below.running;
    return at({below.running, more, below.context_ns});
  }
  const double share = d(running - below.running) / d(above->running - below.running);
  return (1 - share) * at(below) + share * at(*above);
}

double prefill_seconds(const EngineTimes& engine, std::int64_t rows, std::int64_t copies) {
  const PrefillTimes& t = engine.prefill;
  return (t.step_us + t.row_us * d(rows) + t.copy_us * d(copies)) * kMicro;
}

double update_seconds(const EngineTimes& engine, const UpdateWork& work) {
  const UpdateTimes& t = engine.update;
  return (t.update_us + t.minibatch_us * d(work.minibatches) + t.row_us * d(work.rows) +
          t.token_us * d(work.tokens)) *
         kMicro;
}

double reference_seconds(const EngineTimes& engine, std::int64_t rows) {
  return (engine.reference.pass_us + engine.reference.row_us * d(rows)) * kMicro;
}

Result<MachineModel> load_machine_model(const std::filesystem::path& file) {
  TEMPER_TRY(MachineModel c, read_yaml_file<MachineModel>(file));
  const auto lacks = [&](std::string_view what) {
    return invalid_input(
        fmt::format("{}: {}; measure again with `temper measure CONFIG`", file.string(), what));
  };
  if (c.engines.empty())
    return lacks("it has no engine times");
  for (EngineTimes& engine : c.engines) {
    if (engine.decode.empty())
      return lacks(
          fmt::format("it has no decode times of engines with {} threads", engine.threads));
    if (!std::ranges::is_sorted(engine.decode, std::less{}, &DecodeTimes::running))
      return lacks("decode times are not in ascending order of `running`");
  }
  if (Status lengths = actors::check_lengths(c.response); !lengths)
    return lacks("response: " + lengths.error().context);
  return c;
}

std::string busy_note(const MachineModel& calibration) {
  if (calibration.others <= kQuiet)
    return "";
  return fmt::format(
      "the machine was busy during the measurement: other programs took {:.0f} % of its cores' "
      "time in the quietest of {} attempts, so times may be too long by as much; measure again "
      "when it is quiet\n",
      100 * calibration.others,
      kTries);
}

Status save_machine_model(const MachineModel& calibration,
                          const std::filesystem::path& file,
                          const std::string& command) {
  if (file.has_parent_path())
    TEMPER_TRY_STATUS(make_folder(file.parent_path()));
  return write_file_atomically(
      file,
      fmt::format("# Measured times of this machine: docs/how-to/forecast.md. Made by\n#   {}\n{}",
                  command,
                  to_yaml(calibration)));
}

}  // namespace temper::study
