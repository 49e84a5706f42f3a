// Runs our tokenizer for tests/integration/tokenizer_test.py. Reads
//   {"tokenizer": FILE, "texts": [TEXT, ..], "ids": [[id, ..], ..]}
// from standard input and prints {"texts": [..], "ids": [..]}: per text {"ids": [..], "text":
// decoded} or {"error": why}, per list of ids the decoded text.
#include "actors/byte_pair/byte_pair_tokenizer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

int main() {
  const auto asked = nlohmann::json::parse(std::cin, nullptr, false);
  if (asked.is_discarded())
    return 2;
  const auto tokenizer =
      temper::actors::BytePairTokenizer::open(asked.at("tokenizer").get<std::string>());
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().context);
    return 1;
  }
  nlohmann::json out = {{"texts", nlohmann::json::array()}, {"ids", nlohmann::json::array()}};
  for (const auto& text : asked.at("texts")) {
    const auto ids = tokenizer->encode(text.get<std::string>());
    if (ids)
      out["texts"].push_back({{"ids", *ids}, {"text", tokenizer->decode(*ids)}});
    else
      out["texts"].push_back({{"error", ids.error().context}});
  }
  for (const auto& ids : asked.at("ids"))
    out["ids"].push_back(tokenizer->decode(ids.get<std::vector<std::int32_t>>()));
  std::cout << out << '\n';
}
