#include "actors/task/internal/chat_template.hpp"

#include "actors/guard/executable.hpp"
#include "actors/guard/guarded_process.hpp"
#include "actors/task/internal/no_sigpipe.hpp"
#include "actors/task/internal/text.hpp"
#include "core/clock.hpp"
#include "core/json_document.hpp"
#include "core/split.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

// The assembler embeds the program (.incbin); CMake passes its path.
asm(".section .rodata\n"
    ".global temper_chat_template\n"
    "temper_chat_template:\n"
    ".incbin \"" TEMPER_CHAT_TEMPLATE
    "\"\n"
    ".byte 0\n"
    ".previous\n");
// NOLINTNEXTLINE(readability-identifier-naming): the name of a symbol of the assembler.
extern "C" const char temper_chat_template[];

namespace temper::actors {
namespace {

using nlohmann::json;
using Texts = std::vector<Result<std::string>>;

constexpr Bytes kMemory{Bytes::rep{2} << 30};
constexpr std::size_t kLongestReply = 6 * kLongestChat + 256;  // A byte has up to 6 in JSON.
constexpr std::size_t kErrorTextKept = 500;
constexpr Duration kEndGrace = std::chrono::seconds(1);

/// One start of the program.
class ChatRun {
 public:
  ChatRun(const ChatProgram& program, GuardedProcess process, std::span<const std::string> chats)
      : program_(program), process_(std::move(process)), chats_(chats) {}

  Result<Texts> run() {
    const NoSigpipe no_sigpipe;
    deadline_ = clock_.now() + program_.start;
    while (!is_done()) {
      wait();
      send();
      read_errors();
      const bool open = receive();
      TEMPER_TRY_STATUS(take_replies());
      if (!is_done()) {
        if (auto trouble = trouble_of(open))
          TEMPER_TRY_STATUS(stop(*std::move(trouble)));
      }
    }
    if (!stopped_ && !reply_.empty())
      return invalid_input(fmt::format("it wrote `{}` after the last prompt", excerpt(reply_)));
    return std::move(texts_);
  }

 private:
  bool is_done() const { return stopped_ || (ready_ && texts_.size() == chats_.size()); }

  /// Why no more text will come, if so.
  std::optional<std::string> trouble_of(bool output_open) {
    if (reply_.size() > kLongestReply)
      return fmt::format("it wrote a line of more than {} bytes", kLongestReply);
    if (!output_open)
      return how_it_ended();
    if (clock_.now() >= deadline_)
      return late();
    return std::nullopt;
  }

  std::string late() const {
    return ready_ ? fmt::format("no text within {}; a loop of the template may not end",
                                to_text(program_.each))
                  : fmt::format("it was not ready within {}", to_text(program_.start));
  }

  /// Ends the texts with an error. Error: the program was not ready.
  Status stop(std::string why) {
    if (const std::string_view errors = trimmed(error_text_); !errors.empty())
      why += fmt::format("; stderr: {}", excerpt(errors, kErrorTextKept));
    if (!ready_)
      return invalid_input(std::move(why));
    texts_.push_back(invalid_input("rendering stopped: " + why));
    stopped_ = true;
    return {};
  }

  void wait() {
    std::array<pollfd, 3> fds{{{process_.output(), POLLIN, 0},
                               {errors_open_ ? process_.errors() : -1, POLLIN, 0},
                               {can_send() ? process_.input() : -1, POLLOUT, 0}}};
    const Duration left = std::max(Duration(0), deadline_ - clock_.now());
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
    ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
  }

  bool can_send() const { return input_open_ && (!out_.empty() || next_ < chats_.size()); }

  void send() {
    while (can_send()) {
      if (out_.empty())
        out_ = chats_[next_++] + '\n';
      const ssize_t size = ::write(process_.input(), out_.data(), out_.size());
      if (size >= 0)
        out_.erase(0, static_cast<std::size_t>(size));
      else if (errno == EAGAIN)
        return;
      else if (errno != EINTR)
        input_open_ = false;
    }
  }

  /// Appends what can be read to `to`. False: end of file.
  static bool read_into(std::string& to, int fd, std::size_t limit) {
    std::array<char, 1 << 16> piece{};
    while (to.size() <= limit) {
      const ssize_t size = ::read(fd, piece.data(), piece.size());
      if (size > 0)
        to.append(piece.data(), static_cast<std::size_t>(size));
      else if (size == 0 || (errno != EINTR && errno != EAGAIN))
        return false;
      else if (errno == EAGAIN)
        return true;
    }
    return true;
  }

  bool receive() { return read_into(reply_, process_.output(), kLongestReply); }

  void read_errors() {
    if (!errors_open_)
      return;
    errors_open_ = read_into(error_text_, process_.errors(), kLongestReply);
    if (error_text_.size() > kErrorTextKept)
      error_text_.erase(0, error_text_.size() - kErrorTextKept);
  }

  /// Takes the whole lines of what was read.
  Status take_replies() {
    std::size_t begin = 0;
    for (std::size_t end = reply_.find('\n');
         end != std::string::npos && !stopped_ && texts_.size() < chats_.size() + (ready_ ? 0 : 1);
         end = reply_.find('\n', begin)) {
      TEMPER_TRY_STATUS(take(std::string_view(reply_).substr(begin, end - begin)));
      begin = end + 1;
      deadline_ = clock_.now() + program_.each;
    }
    reply_.erase(0, begin);
    return {};
  }

  /// Error: nothing can be rendered.
  Status take(std::string_view line) {
    const json reply = parse_json(line);
    const auto text_of = [&](const char* name) -> std::optional<std::string> {
      const auto field = reply.is_object() ? reply.find(name) : reply.end();
      return field != reply.end() && field->is_string() ? std::optional(field->get<std::string>())
                                                        : std::nullopt;
    };
    if (const auto error = text_of("error")) {
      if (!ready_)
        return invalid_input(*error);
      texts_.push_back(invalid_input(*error));
    } else if (!ready_ && reply.is_object() && reply.contains("ready")) {
      ready_ = true;
    } else if (auto text = text_of("text"); ready_ && text) {
      texts_.push_back(*std::move(text));
    } else {
      return stop(fmt::format("it wrote `{}`", excerpt(line)));
    }
    return {};
  }

  /// Waits a moment for the exit code, which may come after the end of its output.
  std::string how_it_ended() {
    const Time end = clock_.now() + kEndGrace;
    std::optional<std::string> how = process_.how_it_ended();
    while (!how && clock_.now() < end) {
      pollfd ended{process_.ended(), POLLIN, 0};
      ::poll(&ended, 1, 50);
      how = process_.how_it_ended();
    }
    read_errors();
    return how ? "it ended: " + *how : "it closed its output";
  }

  const ChatProgram& program_;
  const RealClock clock_;
  GuardedProcess process_;
  const std::span<const std::string> chats_;
  std::size_t next_ = 0;  ///< The next chat to send.
  std::string out_;       ///< To be written.
  std::string reply_;     ///< The beginning of a line.
  std::string error_text_;
  bool input_open_ = true, errors_open_ = true;
  bool ready_ = false, stopped_ = false;
  Time deadline_{};
  Texts texts_;
};

}  // namespace

ChatProgram chat_program(const std::filesystem::path& folder) {
  return {{default_python(),
           "-c",
           temper_chat_template,
           folder.string(),
           fmt::format("{}", kLongestChat)}};
}

ChatRenderer chat_renderer(ChatProgram program) {
  return [program = std::move(program)](std::span<const std::string> chats) -> Result<Texts> {
    const Sandbox sandbox{SandboxKind::Limits,
                          kMemory,
                          {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"}};
    auto process = GuardedProcess::start(program.command, sandbox);
    if (!process) {
      return Error{process.error().code,
                   process.error().context +
                       "; rendering a chat template needs python3 and python3-jinja2; install "
                       "them, or apply the template before the run with `python -m temper.data`"};
    }
    return ChatRun(program, *std::move(process), chats).run();
  };
}

}  // namespace temper::actors
