// The policy or a critic with gradients, using libtorch's autograd. Callers exchange plain arrays
// (log-probs or values out, their gradients in), so a loss is scalar code and no other file depends
// on tensors. Not thread-safe.
#pragma once

#include "actors/policy/adapter.hpp"
#include "actors/policy/pack.hpp"
#include "actors/policy/weights.hpp"
#include "actors/protocol/top_tokens.hpp"

#include <memory>
#include <span>

namespace temper::actors {

/// Sets the number of threads of matrix products and of libtorch for the whole process.
void set_compute_threads(std::int32_t threads);

enum class Graph { Discard, Keep };

class Transformer {
 public:
  /// Borrows the weights and reads their current values at every forward().
  explicit Transformer(Weights& weights);
  /// The weights are frozen, and gradients are those of the adapter. Borrows both.
  Transformer(const Layout& layout, const InferenceWeights& frozen, Adapter& adapter);
  ~Transformer();
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;

  /// Returns log softmax(logits / temperature) for every target of the pack, in order, and then for
  /// every candidate; valid until the next call. Requires: tokens are in the vocabulary, positions
  /// in the context.
  std::span<const float> forward(const Pack& pack, double temperature, Graph graph);
  /// The log-probs of forward(Graph::Discard), and the `top_k` most likely tokens at every target,
  /// the most likely first.
  struct Scores {
    std::span<const float> logprobs;
    TopTokens top{};
  };
  Scores score(const Pack& pack, double temperature, std::int32_t top_k);
  /// The same as forward() with one value for every target, from the row that predicts it.
  /// Requires: the layout of the weights is that of a critic. The head is float32 for any type of
  /// matrix products.
  std::span<const float> values(const Pack& pack, Graph graph);
  /// Adds the gradient of sum(d_outputs * outputs) of the last forward(Graph::Keep) or
  /// values(Graph::Keep). At most once after each of them.
  void backward(std::span<const float> d_outputs);

  /// Gradients in the layout of the weights, or of the adapter; allocated and zeroed by the first
  /// backward() or by this call.
  FloatBuffer& gradients();
  void zero_gradients();
  void free_gradients();
  Bytes gradient_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace temper::actors
