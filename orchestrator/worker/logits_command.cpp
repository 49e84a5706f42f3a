#include "orchestrator/worker/logits_command.hpp"

#include "actors/model_folder/model_folder.hpp"
#include "actors/policy/decoder.hpp"
#include "actors/policy/weights.hpp"
#include "core/files.hpp"
#include "orchestrator/model_comparison/comparison_request.hpp"
#include "orchestrator/worker/roles/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace temper::orchestrator {
namespace {

/// Error: a token that the model does not have, or a sequence without tokens.
Status check_sequence(const std::vector<std::int32_t>& tokens, std::int32_t vocabulary) {
  if (tokens.empty())
    return invalid_input("a sequence without tokens");
  const auto [least, most] = std::ranges::minmax(tokens);
  if (least < 0 || most >= vocabulary) {
    return invalid_input(
        fmt::format("token ids {} to {}, of a vocabulary of {}", least, most, vocabulary));
  }
  return {};
}

Status compute_logits(const LogitsArguments& arguments) {
  TEMPER_TRY(const ComparisonRequest request, read_comparison_request(arguments.folder));
  std::int64_t longest = 1;
  for (const auto& sequence : request.sequences)
    longest = std::max<std::int64_t>(longest, std::ssize(sequence));
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(arguments.model, arguments.ignore));
  actors::ModelConfig model = folder.model();
  if (longest > model.context.count())
    return invalid_input(
        fmt::format("{} tokens exceed the context of {}", longest, model.context.count()));
  model.context = Tokens(longest);  // The cache reserves it: gigabytes for a long context.
  TEMPER_TRY(const auto layout, actors::Layout::make(model, 0));
  use_threads(std::max(1U, std::thread::hardware_concurrency()));
  TEMPER_TRY(const auto weights, actors::Weights::from_folder(layout, folder));
  actors::Decoder decoder(layout, 1);
  std::string out;
  for (const auto& sequence : request.sequences) {
    TEMPER_TRY_STATUS(check_sequence(sequence, layout.vocabulary()));
    std::vector<actors::DecoderRow> rows;
    for (const std::int32_t token : sequence)
      rows.push_back({token, 0, static_cast<std::int32_t>(rows.size())});
    const auto logits = decoder.forward(weights, rows, actors::Decoder::Output::Logits);
    const auto bytes = std::as_bytes(logits);
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return write_file_atomically(std::filesystem::path(arguments.folder) / kLogitsFile, out);
}

}  // namespace

int run_logits(const LogitsArguments& arguments) {
  const Status status = compute_logits(arguments);
  if (!status)
    fmt::print(stderr, "{}\n", status.error().context);
  return status ? 0 : 1;
}

}  // namespace temper::orchestrator
