#include "orchestrator/worker/verify_command.hpp"

#include "actors/roles/reward_role.hpp"
#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <optional>
#include <string>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kLongestFrame = std::size_t{1} << 30;

struct VerifyBatch {
  std::vector<actors::JudgeRequest> items;
};
void describe(auto& v, VerifyBatch& b) {
  v.field(1, "items", b.items);
}

/// None: the end of stdin. Error: a frame that is cut off or too long.
Result<std::optional<std::string>> read_frame() {
  std::array<unsigned char, 4> head{};
  const std::size_t got = std::fread(head.data(), 1, head.size(), stdin);
  if (got == 0)
    return std::optional<std::string>();
  std::size_t size = 0;
  for (std::size_t i = 0; i < head.size(); ++i)
    size |= std::size_t{head[i]} << (8 * i);
  if (got < head.size() || size > kLongestFrame)
    return invalid_input(fmt::format("a frame of {} bytes", size));
  std::string frame(size, '\0');
  if (std::fread(frame.data(), 1, size, stdin) != size)
    return invalid_input("a frame that is cut off");
  return std::optional(std::move(frame));
}

Status write_frame(const std::string& frame) {
  std::array<unsigned char, 4> head{};
  for (std::size_t i = 0; i < head.size(); ++i)
    head[i] = static_cast<unsigned char>(frame.size() >> (8 * i));
  if (std::fwrite(head.data(), 1, head.size(), stdout) != head.size() ||
      std::fwrite(frame.data(), 1, frame.size(), stdout) != frame.size() ||
      std::fflush(stdout) != 0)
    return Error{ErrorCode::Io, "cannot write to stdout"};
  return {};
}

Status verify() {
  TEMPER_TRY(const auto first, read_frame());
  if (!first)
    return {};
  TEMPER_TRY(const auto config, decode<actors::VerifierConfig>(*first));
  TEMPER_TRY(const auto verifier, actors::make_verifier(config));
  TEMPER_TRY_STATUS(write_frame(encode(actors::Judged())));
  for (;;) {
    TEMPER_TRY(const auto frame, read_frame());
    if (!frame)
      return {};
    TEMPER_TRY(const auto batch, decode<VerifyBatch>(*frame));
    TEMPER_TRY_STATUS(write_frame(encode(actors::judge(*verifier, batch.items))));
  }
}

}  // namespace

int run_verify() {
  const Status done = verify();
  if (!done)
    fmt::print(stderr, "temper-worker: {}\n", done.error().context);
  return done ? 0 : 1;
}

}  // namespace temper::orchestrator
