#include "actors/policy/pack.hpp"

#include "core/check.hpp"

namespace temper::actors {

void Pack::add_rows(std::span<const std::int32_t> tokens, std::int64_t first_position) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens_.push_back(tokens[i]);
    positions_.push_back(static_cast<std::int32_t>(first_position) + static_cast<std::int32_t>(i));
  }
}

void Pack::add_prompt(std::span<const std::int32_t> tokens) {
  TEMPER_CHECK(!tokens.empty(), "a prompt must have at least one token");
  prompt_begin_ = rows();
  prompt_count_ = rows_of_prompt(tokens);
  add_rows(tokens, 0);
  sequences_.push_back({0, 0, prompt_begin_, prompt_count_});
  prompt_output_ = static_cast<std::int32_t>(output_rows_.size());
  output_rows_.push_back(rows() - 1);
}

void Pack::add_response(std::span<const std::int32_t> tokens) {
  TEMPER_CHECK(prompt_count_ > 0, "a response requires a prompt");
  response_ = targets_.size();
  if (tokens.empty())
    return;
  const std::int64_t begin = rows();
  add_rows(tokens.first(tokens.size() - 1), prompt_count_);
  if (rows() > begin)
    sequences_.push_back({prompt_begin_, prompt_count_, begin, rows() - begin});
  targets_.push_back({prompt_output_, tokens[0]});
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    targets_.push_back({static_cast<std::int32_t>(output_rows_.size()), tokens[i]});
    output_rows_.push_back(begin + static_cast<std::int64_t>(i) - 1);
  }
}

void Pack::add_candidates(std::span<const std::int32_t> tokens) {
  const std::size_t size = targets_.size() - response_;
  if (tokens.empty())
    return;
  TEMPER_CHECK(size > 0 && tokens.size() % size == 0, "as many candidates at each token");
  const std::size_t each = tokens.size() / size;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    candidates_.push_back({targets_[response_ + i / each].output, tokens[i]});
}

}  // namespace temper::actors
