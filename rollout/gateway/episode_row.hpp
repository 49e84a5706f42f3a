// What an episode has recorded: one row of the batch, with the tokens that the policy sampled and
// those that came from elsewhere. Pure.
//
// A turn is sampled behind a context. The context begins with the prompt of the group; what it has
// beyond the recorded tokens is taken into the row as given (mask 0, log-prob 0). Where it leaves
// the recorded tokens, the row forks: it keeps what both have in common, and what it had beyond
// that is not trained.
#pragma once

#include "core/result.hpp"
#include "rollout/engine.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::rollout {

/// What an episode came to.
struct EpisodeCounts {
  std::size_t turns = 0;
  std::size_t forks = 0;
  std::size_t sampled = 0;  ///< Tokens of the row that are trained.
  std::size_t given = 0;    ///< Tokens of the row that came from elsewhere.
  std::size_t dropped = 0;  ///< Sampled tokens that a fork left behind.
};

class EpisodeRow {
 public:
  /// `text`: of the prompt.
  EpisodeRow(std::vector<std::int32_t> prompt, std::string text)
      : prompt_(std::move(prompt)), text_(std::move(text)) {}

  const std::vector<std::int32_t>& prompt() const { return prompt_; }
  /// Behind the prompt.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  /// Prompt and row.
  std::vector<std::int32_t> context() const;
  /// What an agent has seen of it: the text of the prompt, and what turns were answered with.
  /// None: it was asked with token ids, which may have no text.
  const std::optional<std::string>& text() const { return text_; }
  const EpisodeCounts& counts() const { return counts_; }

  /// The row is `context` from here on. `version`: that the engine has now. Error: it does not
  /// begin with the prompt.
  Status go_to(std::span<const std::int32_t> context, PolicyVersion version);
  /// A turn that was sampled behind the row.
  void add(const Generation& turn);
  /// The text that stands for prompt and row from here on.
  void show(std::optional<std::string> text) { text_ = std::move(text); }

  /// The whole row as a response, with `reward` at its last token.
  Generation finish(ResponseId id, actors::FinishReason finish, double reward) &&;

 private:
  void cut_to(std::size_t length);
  void add_segment(PolicyVersion version, std::size_t tokens);

  const std::vector<std::int32_t> prompt_;
  std::optional<std::string> text_;
  std::vector<std::int32_t> tokens_;
  std::vector<float> logprobs_;
  std::vector<std::uint8_t> mask_;
  std::vector<actors::Segment> segments_;
  EpisodeCounts counts_;
};

}  // namespace temper::rollout
