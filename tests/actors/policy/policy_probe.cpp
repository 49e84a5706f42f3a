// What our policy makes of a model folder, for tests/integration/models_test.py: reads
//   {"folder": DIR, "sequences": [[token, ..], ..], "new_tokens": n}
// from standard input and prints, for each sequence, the logits after every token as generation
// computes them, the log-prob of every token but the first as training does, and the n tokens that
// follow it where the most likely one is always taken.
#include "actors/model_folder/model_folder.hpp"
#include "actors/policy/decoder.hpp"
#include "actors/policy/transformer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>

namespace temper::actors {
namespace {

using Tokens32 = std::vector<std::int32_t>;

std::vector<DecoderRow> rows_of(const Tokens32& tokens) {
  std::vector<DecoderRow> rows;
  for (const std::int32_t token : tokens)
    rows.push_back({token, 0, static_cast<std::int32_t>(rows.size())});
  return rows;
}

Tokens32 greedy(Decoder& decoder, const Weights& weights, const Tokens32& prompt, int n) {
  Tokens32 out;
  std::vector<DecoderRow> rows = rows_of(prompt);
  auto position = static_cast<std::int32_t>(rows.size());
  const auto width = static_cast<std::size_t>(weights.layout().vocabulary());
  for (int i = 0; i < n; ++i) {
    const auto logits = decoder.forward(weights, rows, Decoder::Output::Logits);
    const auto last = logits.last(width);
    out.push_back(static_cast<std::int32_t>(std::ranges::max_element(last) - last.begin()));
    rows = {{out.back(), 0, position++}};
  }
  return out;
}

Result<nlohmann::json> probe(const nlohmann::json& asked) {
  TEMPER_TRY(const ModelFolder folder, ModelFolder::open(asked.at("folder").get<std::string>()));
  TEMPER_TRY(const Layout layout, Layout::make(folder.model(), 0));
  TEMPER_TRY(Weights weights, Weights::from_folder(layout, folder));
  Decoder decoder(layout, 1);
  Transformer network(weights);
  nlohmann::json out = nlohmann::json::array();
  const auto more = asked.at("new_tokens").get<int>();
  for (const auto& list : asked.at("sequences")) {
    const auto tokens = list.get<Tokens32>();
    if (std::ssize(tokens) + more > layout.model().context.count()) {
      return invalid_input(fmt::format("{} tokens and {} do not fit the context of {}",
                                       tokens.size(),
                                       more,
                                       layout.model().context.count()));
    }
    const auto logits = decoder.forward(weights, rows_of(tokens), Decoder::Output::Logits);
    nlohmann::json one = {{"logits", std::vector<float>(logits.begin(), logits.end())}};
    Pack pack;
    pack.add_prompt(std::span(tokens).first(1));
    pack.add_response(std::span(tokens).subspan(1));
    const auto logprobs = network.forward(pack, 1.0, Graph::Discard);
    one["logprobs"] = std::vector<float>(logprobs.begin(), logprobs.end());
    one["greedy"] = greedy(decoder, weights, tokens, more);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace
}  // namespace temper::actors

int main() {
  const auto asked = nlohmann::json::parse(std::cin, nullptr, false);
  if (asked.is_discarded())
    return 2;
  temper::actors::set_compute_threads(1);
  const auto said = temper::actors::probe(asked);
  if (!said) {
    fmt::print(stderr, "{}\n", said.error().context);
    return 1;
  }
  std::cout << *said << '\n';
}
