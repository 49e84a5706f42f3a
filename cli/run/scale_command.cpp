#include "cli/run/scale_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/clock.hpp"
#include "core/text/numbers.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/run/scale_request.hpp"
#include "orchestrator/start/start_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <tuple>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using orchestrator::ScaleRequest;

/// How long to wait for the orchestrator, which checks for requests every second.
constexpr Duration kPatience = std::chrono::seconds(30);
constexpr int kAnswerPeriodMs = 100;

struct ScaleOptions {
  std::string run_dir;
  std::vector<std::string> numbers;
};

/// "rollout=3".
Status parse_number_of_actors(const std::string& word, ScaleRequest& request) {
  const std::size_t sign = word.find('=');
  const std::string role = word.substr(0, sign);
  std::optional<std::int32_t>* to = role == "rollout"     ? &request.rollout
                                    : role == "reference" ? &request.reference
                                    : role == "reward"    ? &request.reward
                                                          : nullptr;
  const auto number =
      parse_number<std::int32_t>(sign == std::string::npos ? "" : word.substr(sign + 1));
  if (to == nullptr || !number) {
    return invalid_input(fmt::format(
        "expected ROLE=N such as rollout=3, reference=1 or reward=2, found \"{}\"", word));
  }
  *to = *number;
  return {};
}

/// The request as settings of the configuration.
std::vector<std::string> settings_of(const ScaleRequest& request) {
  std::vector<std::string> sets;
  const auto set = [&](const char* role, const std::optional<std::int32_t>& number) {
    if (number)
      sets.push_back(fmt::format("{}.replicas={}", role, *number));
  };
  set("rollout", request.rollout);
  set("reference", request.reference);
  set("reward", request.reward);
  return sets;
}

/// The settings with which the run is resumed, for teachers with numbers of their own too.
std::vector<std::string> resume_settings(const fs::path& run_dir, const ScaleRequest& request) {
  std::vector<std::string> sets = settings_of(request);
  const auto config = orchestrator::load_config(run_dir / "config.yaml");
  if (config && request.reference) {
    for (const auto& [name, teacher] : config->reference.teachers) {
      if (teacher.replicas)
        sets.push_back(fmt::format("reference.teachers.{}.replicas={}", name, *request.reference));
    }
  }
  return sets;
}

/// The command that resumes the run with the wanted numbers.
std::string resume_command(const fs::path& run_dir, const ScaleRequest& request) {
  std::string command = "temper run --resume " + run_dir.string();
  for (const std::string& set : resume_settings(run_dir, request))
    command += " --set " + set;
  return command;
}

/// The run's configuration with these settings. Error: it is not valid.
Result<orchestrator::LoadedConfig> with_settings(const fs::path& run_dir,
                                                 std::vector<std::string> sets) {
  sets.push_back("run_dir=" + run_dir.string());
  TEMPER_TRY(orchestrator::LoadedConfig loaded,
             orchestrator::read_config(run_dir / "config.yaml", sets));
  if (!loaded.issues().empty())
    return config_error(loaded.issues());
  return loaded;
}

/// Validates the run's configuration with these numbers before it sends a request.
Status check_numbers(const fs::path& run_dir, const ScaleRequest& request) {
  TEMPER_TRY(const orchestrator::LoadedConfig loaded, with_settings(run_dir, settings_of(request)));
  if (orchestrator::is_simulated(loaded.config())) {
    return invalid_input(fmt::format(
        "a running job on simulated hardware cannot be scaled; stop it, then resume it with "
        "these numbers: {}",
        resume_command(run_dir, request)));
  }
  std::vector<ConfigIssue> issues;
  for (const orchestrator::BrokenRule& rule : orchestrator::rules_of_this_machine(loaded.config()))
    issues.push_back(loaded.blame(rule));
  if (!issues.empty())
    return config_error(issues);
  return {};
}

/// Whether a process holds the run's lock. Error: the folder cannot be read.
Result<bool> is_running(const fs::path& run_dir) {
  const auto lock = orchestrator::RunDir(run_dir).lock();
  if (!lock && lock.error().code != ErrorCode::Unavailable)
    return lock.error();
  return !lock;
}

/// Checks that the run is running.
Status check_is_running(const fs::path& run_dir, const ScaleRequest& request) {
  std::error_code ignored;
  if (!fs::exists(run_dir / "events.log", ignored))
    return Error{ErrorCode::NotFound,
                 fmt::format("{} holds no run (no events.log)", run_dir.string())};
  TEMPER_TRY(const bool there, is_running(run_dir));
  if (there)
    return {};
  const auto valid = with_settings(run_dir, resume_settings(run_dir, request));
  if (!valid)
    return valid.error();
  return invalid_input(
      fmt::format("the run in {} is not running; to resume it with these numbers: {}",
                  run_dir.string(),
                  resume_command(run_dir, request)));
}

Result<orchestrator::ScaleAnswer> ask(const fs::path& run_dir, const ScaleRequest& request) {
  TEMPER_TRY_STATUS(orchestrator::write_request(run_dir, request));
  const RealClock clock;
  while (clock.now() < Time(kPatience)) {
    TEMPER_TRY(const bool there,
               is_running(run_dir));  // checked before the answer, which may be the run's last
    if (auto answer = orchestrator::read_answer(run_dir, request.id))
      return *std::move(answer);
    if (!there) {
      std::ignore = orchestrator::withdraw_request(run_dir);
      return Error{ErrorCode::Unavailable,
                   fmt::format("the run in {} ended before it answered; to resume it with these "
                               "numbers: {}",
                               run_dir.string(),
                               resume_command(run_dir, request))};
    }
    ::poll(nullptr, 0, kAnswerPeriodMs);
  }
  std::ignore = orchestrator::withdraw_request(run_dir);
  return Error{ErrorCode::Unavailable,
               fmt::format("the orchestrator of {} did not answer within {}; the request was "
                           "withdrawn; see logs/orchestrator.log in the run folder",
                           run_dir.string(),
                           to_text(kPatience))};
}

Status scale(const ScaleOptions& options) {
  const fs::path run_dir = fs::absolute(options.run_dir).lexically_normal();
  ScaleRequest request{fmt::format("{}-{}", calendar_stamp(), ::getpid()), {}, {}, {}};
  for (const std::string& word : options.numbers)
    TEMPER_TRY_STATUS(parse_number_of_actors(word, request));
  TEMPER_TRY_STATUS(check_is_running(run_dir, request));
  TEMPER_TRY_STATUS(check_numbers(run_dir, request));
  TEMPER_TRY(const auto answer, ask(run_dir, request));
  using orchestrator::ScaleOutcome;
  if (answer.outcome == ScaleOutcome::Restarted)
    return Error{ErrorCode::Unavailable, answer.refused};
  if (answer.outcome == ScaleOutcome::Refused)
    return invalid_input(answer.refused);
  fmt::print(
      "{}",
      answer.done.empty() ? "nothing to change: the run already has these numbers\n" : answer.done);
  return {};
}

}  // namespace

Handler scale_command(Flags& flags) {
  const auto options = std::make_shared<ScaleOptions>();
  flags.argument("run", options->run_dir, "Run folder");
  flags.arguments(
      "numbers", options->numbers, "New numbers of actors: rollout=N, reference=N, reward=N");
  return [options] {
    ::umask(0077);
    const Status status = scale(*options);
    return status ? kDone : fail(status.error());
  };
}

}  // namespace temper::cli
