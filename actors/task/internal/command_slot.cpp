#include "actors/task/internal/command_slot.hpp"

#include "actors/border/values.hpp"
#include "actors/task/internal/text.hpp"
#include "core/json_document.hpp"
#include "core/split.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace temper::actors {

namespace {

using nlohmann::json;

constexpr std::size_t kErrorTextKept = 400;
constexpr std::size_t kMostEnding = 16;
// Time for a command to end after it closed its stdout, so that we can report how it ended.
constexpr Duration kEndGrace = std::chrono::milliseconds(200);

enum class ReadEnd { NothingNow, Closed, Limit };

/// Appends the available bytes to `out`, until `out` has more than `limit` bytes.
ReadEnd read_available(int fd, std::string& out, std::size_t limit) {
  std::array<char, 16384> chunk;
  while (out.size() <= limit) {
    const ssize_t size = ::read(fd, chunk.data(), chunk.size());
    if (size > 0)
      out.append(chunk.data(), static_cast<std::size_t>(size));
    else if (size < 0 && errno == EINTR)
      continue;
    else
      return size < 0 && errno == EAGAIN ? ReadEnd::NothingNow : ReadEnd::Closed;
  }
  return ReadEnd::Limit;
}

}  // namespace

Result<double> parse_reply(std::string_view line) {
  const json reply = parse_json(line);
  if (reply.is_discarded())
    return invalid_input(fmt::format("the reply is not JSON: `{}`", excerpt(line)));
  const auto reward = reply.is_object() ? reply.find("reward") : reply.end();
  if (reward == reply.end())
    return invalid_input(fmt::format(
        "the reply has no `reward`: `{}`; expected {{\"reward\": NUMBER}}", excerpt(line)));
  if (!reward->is_number())
    return invalid_input(fmt::format("`reward` is not a finite number: `{}`", excerpt(line)));
  TEMPER_TRY_STATUS(check_reward(reward->get<double>()));
  return reward->get<double>();
}

Status CommandSlot::start() {
  const Sandbox sandbox{config_->sandbox, config_->memory, config_->environment, config_->hidden};
  TEMPER_TRY(GuardedProcess process, GuardedProcess::start(config_->command, sandbox));
  process_.emplace(std::move(process));
  input_open_ = output_open_ = errors_open_ = true;
  proven_ = false;
  reply_.clear();
  error_text_.clear();
  return {};
}

void CommandSlot::assign(std::size_t sample, const JudgeRequest& request, Time now) {
  sample_ = sample;
  deadline_ = now + config_->deadline;
  const nlohmann::ordered_json line{
      {"prompt", request.prompt}, {"answer", request.answer}, {"response", request.response}};
  request_ = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  request_ += '\n';
  sent_ = 0;
  talking_ = false;
  error_text_.clear();
  error_bytes_ = 0;
}

std::optional<Verdict> CommandSlot::advance(Time now) {
  ending_.remove_if([](GuardedProcess& process) { return process.is_gone(); });
  if (!talking_) {
    if (Status prepared = prepare_process(now); !prepared)
      return fail(prepared.error().context, now);
  }
  if (talking_) {
    send();
    // Checked before reading, so that its last output is read too.
    const std::optional<std::string> ended = how_it_ended();
    drain_errors();
    receive();
    if (auto verdict = read_verdict(now))
      return verdict;
    if (ended)
      return fail("it ended without a reply: " + *ended, now);
    if (auto trouble = trouble_while_talking(now))
      return fail(*std::move(trouble), now);
  } else if (now >= deadline_) {
    sample_.reset();
    return Verdict{.failure = "cannot start a process: " + trouble_};
  }
  return std::nullopt;
}

/// Error: the command could not be started, and waiting will not help.
Status CommandSlot::prepare_process(Time now) {
  if (process_) {
    if (auto trouble = trouble_while_idle()) {
      trouble_ = *std::move(trouble);
      discard_process(now);
    }
  }
  if (!process_ && now >= not_before_) {
    if (ending_.size() >= kMostEnding)
      return Error{ErrorCode::Unavailable,
                   fmt::format("{} killed processes have not ended", ending_.size())};
    TEMPER_TRY_STATUS(start());
  }
  talking_ = process_.has_value();
  return {};
}

/// The reason why a process cannot judge the next sample, if any.
std::optional<std::string> CommandSlot::trouble_while_idle() {
  const std::optional<std::string> ended = how_it_ended();
  drain_errors();
  error_bytes_ = 0;
  receive();
  if (!reply_.empty())
    return fmt::format("it wrote `{}` without a request", excerpt(reply_));
  if (ended)
    return "it ended: " + *ended;
  return std::nullopt;
}

void CommandSlot::send() {
  while (input_open_ && sent_ < request_.size()) {
    const ssize_t size =
        ::write(process_->input(), request_.data() + sent_, request_.size() - sent_);
    if (size >= 0)
      sent_ += static_cast<std::size_t>(size);
    else if (errno == EAGAIN)
      return;
    else if (errno != EINTR)
      input_open_ = false;  // It ended or closed its stdin; its reply, if any, is still read.
  }
}

void CommandSlot::receive() {
  if (output_open_ && read_available(process_->output(), reply_, kLongestReply) == ReadEnd::Closed)
    output_open_ = false;
}

void CommandSlot::drain_errors() {
  while (errors_open_ && error_bytes_ <= kMostErrorText) {
    std::string text;
    const ReadEnd end = read_available(process_->errors(), text, kErrorTextKept);
    error_bytes_ += text.size();
    error_text_ += text;
    if (error_text_.size() > kErrorTextKept)
      error_text_.erase(0, error_text_.size() - kErrorTextKept);
    if (end == ReadEnd::NothingNow)
      return;
    errors_open_ = end != ReadEnd::Closed;
  }
}

std::optional<Verdict> CommandSlot::read_verdict(Time now) {
  const std::size_t end = reply_.find('\n');
  if (end == std::string::npos)
    return std::nullopt;
  const Result<double> reward = parse_reply(std::string_view(reply_).substr(0, end));
  if (!reward)
    return fail(reward.error().context, now);
  // More than one line, or a reply before the whole request was sent: later replies may be wrong.
  const bool in_step = end + 1 == reply_.size() && sent_ == request_.size();
  reply_.clear();
  proven_ = true;
  pause_ = Duration(0);
  sample_.reset();
  if (!in_step) {
    trouble_ = "its replies were out of step with the requests";
    discard_process(now);
  }
  return Verdict{.reward = *reward, .failure = {}};
}

std::optional<std::string> CommandSlot::trouble_while_talking(Time now) {
  if (reply_.size() > kLongestReply)
    return fmt::format("expected a reply of at most {} bytes, found more", kLongestReply);
  if (error_bytes_ > kMostErrorText)
    return fmt::format("expected at most {} bytes on stderr, found more", kMostErrorText);
  if (now >= deadline_)
    return output_open_ ? fmt::format("no reply within {}", to_text(config_->deadline))
                        : "it closed its stdout";
  if (!output_open_)
    deadline_ = std::min(deadline_, now + kEndGrace);
  return std::nullopt;
}

std::optional<std::string> CommandSlot::how_it_ended() {
  const bool gone = process_->is_gone();  // First: a guard writes how it ended before it is gone.
  if (auto how = process_->how_it_ended())
    return how;
  if (gone)
    return "killed together with its guard process";
  return std::nullopt;
}

Verdict CommandSlot::fail(std::string why, Time now) {
  std::string_view errors = trimmed(error_text_);
  if (!errors.empty())
    why += fmt::format("; stderr: {}", excerpt(errors, kErrorTextKept));
  trouble_ = why;
  discard_process(now);
  sample_.reset();
  return Verdict{.failure = std::move(why)};
}

void CommandSlot::abandon(Time now) {
  discard_process(now);
  sample_.reset();
}

void CommandSlot::discard_process(Time now) {
  if (proven_) {
    pause_ = Duration(0);
  } else {
    const Duration most = std::min<Duration>(kLongestPause, config_->deadline / 2);
    pause_ = std::min(most, pause_ == Duration(0) ? kFirstPause : 2 * pause_);
  }
  not_before_ = now + pause_;
  talking_ = false;
  proven_ = false;
  if (process_) {
    process_->kill();
    ending_.push_back(*std::move(process_));
    process_.reset();
  }
}

void CommandSlot::add_to_poll(std::vector<pollfd>& fds) const {
  if (!process_)
    return;
  fds.push_back({process_->ended(), POLLIN, 0});
  if (input_open_ && sent_ < request_.size())
    fds.push_back({process_->input(), POLLOUT, 0});
  if (output_open_)
    fds.push_back({process_->output(), POLLIN, 0});
  if (errors_open_)
    fds.push_back({process_->errors(), POLLIN, 0});
}

Time CommandSlot::wake_time() const {
  return process_ ? deadline_ : std::min(deadline_, not_before_);
}

}  // namespace temper::actors
