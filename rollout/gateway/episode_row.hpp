// The recorded row of an episode: the tokens that the policy sampled, and those that came from
// elsewhere. No I/O.
//
// Each turn is sampled after a context, which begins with the prompt of the group. What the context
// has beyond the recorded tokens is added to the row as given (mask 0, log-prob 0). If the context
// diverges from the recorded tokens, the row forks: it keeps the common part, and the rest of the
// row is not trained.
#pragma once

#include "core/result.hpp"
#include "rollout/engine.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::rollout {

/// Statistics of an episode.
struct EpisodeCounts {
  std::size_t turns = 0;
  std::size_t forks = 0;
  std::size_t sampled = 0;  ///< Tokens of the row that are trained.
  std::size_t given = 0;    ///< Tokens of the row that came from elsewhere.
  std::size_t dropped = 0;  ///< Sampled tokens that a fork removed.
};

class EpisodeRow {
 public:
  /// `text`: text of the prompt.
  EpisodeRow(std::vector<std::int32_t> prompt, std::string text)
      : prompt_(std::move(prompt)), text_(std::move(text)) {}

  const std::vector<std::int32_t>& prompt() const { return prompt_; }
  /// Tokens after the prompt.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  /// Prompt and tokens.
  std::vector<std::int32_t> context() const;
  /// The text that the agent has seen: that of the prompt and of the answered turns. None: it used
  /// token ids, which may have no text.
  const std::optional<std::string>& text() const { return text_; }
  const EpisodeCounts& counts() const { return counts_; }

  /// Makes `context` the row. `version`: current version of the engine. Error: the context does not
  /// begin with the prompt.
  Status move_to(std::span<const std::int32_t> context, PolicyVersion version);
  /// Appends a turn that was sampled after the row.
  void add(const Generation& turn);
  /// Sets the text of prompt and row.
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
