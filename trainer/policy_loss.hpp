// The loss of a response's tokens and its derivatives with respect to their log-probs, as scalar
// arithmetic: the engine passes log-probs in and feeds the derivatives to the network.
//
// Log-probs of a token: l under the weights being trained, b as recorded when sampled, p under the
// weights before the first minibatch of the step, ref under the reference. A is the advantage of
// the token: reward_weight times that of the response (with a critic, of the token), plus
// distillation times ref - b, whose mean is the negative reverse KL of the sampler to the reference
// (the teacher); with distillation_top_k, this part is a loss of its own (top_k_loss.hpp) and A is
// only the first. sg stops gradients.
//   r(x, y) = exp(x - y), or exp(mean over the response of x - y) at RatioLevel::Sequence; w has a
//             level of its own, which may also be exp(sum over the response of x - y)
//   m(r)    = min(r A, clip(r, 1 - clip_low, 1 + clip_high) A)
//   clip       -m(r(l, b))
//   naive      -m(r(l, p))
//   decoupled  -w m(r(l, p)), w = r(p, b), outside its floor and cap the nearer one or (mask) 0
//   tis        the same, never masked
//   cispo      -sg(clip(r(l, b))) A l
//   reinforce  -A l
// and with a reference, kl * k3 of each token, k3 = exp(ref - l) - 1 - (ref - l), an unbiased
// estimate of KL(policy || reference). A derivative is that of the sum of the losses of the
// response: with a sequence ratio, each token affects all of them.
#pragma once

#include "trainer/algorithm.hpp"

#include <span>

namespace temper::trainer {

/// Log-probs have one entry per token.
struct ResponseInputs {
  std::span<const double> current;
  std::span<const double> behaviour;
  std::span<const double> proximal;   ///< May be empty unless needs_proximal().
  std::span<const double> reference;  ///< May be empty unless needs_reference().
  double advantage = 0;               ///< Of the response, from its reward.
  /// Of each token; empty: `advantage` for all.
  std::span<const double> token_advantages{};
};

struct TokenLoss {
  double loss = 0;
  double d_logprob = 0;  ///< Derivative of the sum over the response.
  double weight = 1;     ///< w; 1 if the objective has none.
  double kl = 0;         ///< k3, without its coefficient; 0 without a reference.
  bool clipped = false;  ///< Whether the clip took effect.
  bool capped = false;   ///< Whether the ratio behind w was outside its floor and cap.
};

/// Requires: `out` has one entry per token. With a reference, k3 is computed even if it has no
/// weight in the loss.
void response_loss(const ResponseInputs& in, const Algorithm& algorithm, std::span<TokenLoss> out);

/// The weight of a token's loss in its minibatch is token_share() / shares(): the first is known
/// once its response is, the second once the minibatch is complete.
double token_share(const Algorithm& algorithm, std::size_t tokens_of_response);
/// For a minibatch of this many tokens and responses.
double shares(const Algorithm& algorithm, std::size_t tokens, std::size_t responses);

}  // namespace temper::trainer
