// The policy with gradients, on libtorch's autograd. The caller sees plain arrays: log-probs out,
// their gradients in, so a loss is scalar code and nothing above this file knows of tensors.
// Not thread-safe.
#pragma once

#include "actors/policy/pack.hpp"
#include "actors/policy/weights.hpp"

#include <memory>
#include <span>

namespace temper::actors {

/// Threads of matrix products and of libtorch, for the whole process: the cards an actor owns.
void set_compute_threads(std::int32_t threads);

enum class Graph { Discard, Keep };

class Transformer {
 public:
  /// Borrows the weights: reads their current values at every forward.
  explicit Transformer(Weights& weights);
  ~Transformer();
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;

  /// log softmax(logits / temperature) at every target of the pack, in order; valid until the next
  /// call. Requires: tokens in the vocabulary, positions in the context.
  std::span<const float> forward(const Pack& pack, double temperature, Graph graph);
  /// Adds the gradient of sum(d_logprobs * logprobs) of the last forward(Graph::Keep), once.
  void backward(std::span<const float> d_logprobs);

  /// Laid out as the weights; allocated (zero) by the first backward or by this call.
  FloatBuffer& gradients();
  void zero_gradients();
  void free_gradients();
  Bytes gradient_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace temper::actors
