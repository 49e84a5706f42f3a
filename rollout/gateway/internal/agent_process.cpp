#include "rollout/gateway/internal/agent_process.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace temper::rollout::internal {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// Reads what is available.
void read_available(int fd, std::string& to) {
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t size = ::read(fd, piece.data(), piece.size());
    if (size > 0) {
      to.append(piece.data(), static_cast<std::size_t>(size));
      if (to.size() > kLongestLine)
        return;
    } else if (size == 0 || errno != EINTR) {
      return;  // Nothing available, or closed: its end is detected elsewhere.
    }
  }
}

std::optional<std::string> next_line(std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos)
    return std::nullopt;
  std::string line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

}  // namespace

Status AgentProcess::start() {
  actors::Sandbox sandbox;
  sandbox.environment = config_->environment;
  TEMPER_TRY(auto process, actors::GuardedProcess::start(config_->command, sandbox));
  process_.emplace(std::move(process));
  to_write_.clear();
  read_.clear();
  why_.clear();
  return {};
}

void AgentProcess::say(std::string_view line) {
  to_write_ += line;
  to_write_ += '\n';
}

std::vector<std::string> AgentProcess::advance() {
  std::vector<std::string> lines;
  if (!process_)
    return lines;
  while (!to_write_.empty()) {
    const ssize_t size = ::write(process_->input(), to_write_.data(), to_write_.size());
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      break;  // Full, or closed: it has ended, or will miss its deadlines.
    to_write_.erase(0, static_cast<std::size_t>(size));
  }
  read_available(process_->output(), read_);
  while (auto line = next_line(read_))
    lines.push_back(*std::move(line));
  read_errors();
  if (read_.size() > kLongestLine)
    end("it wrote a line longer than 1 MiB");
  return lines;
}

void AgentProcess::read_errors() {
  read_available(process_->errors(), errors_);
  while (auto line = next_line(errors_))
    log_->info("agent says", {{"line", *line}});
  if (errors_.size() > kLongestLine)
    errors_.clear();
}

std::optional<std::string> AgentProcess::ended() {
  if (!process_)
    return std::nullopt;
  auto how = process_->how_it_ended();
  if (!how && why_.empty())
    return std::nullopt;
  std::string why = how.value_or(why_);
  read_errors();
  if (!errors_.empty())
    log_->info("agent says", {{"line", std::exchange(errors_, {})}});
  process_.reset();
  return why;
}

void AgentProcess::end(std::string why) {
  why_ = std::move(why);
}

}  // namespace temper::rollout::internal
