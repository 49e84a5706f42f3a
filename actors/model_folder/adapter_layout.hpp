// The tensors of an adapter (LoRA), their shapes, and their places in one flat array of floats.
//
// Each target, a linear layer of one block with weight [out, in], has A [rank, in] and then
// B [out, rank], in the order of Layout::stored(). In files and messages they have the names of
// peft: base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight
#pragma once

#include "actors/model/lora_config.hpp"
#include "actors/model_folder/layout.hpp"
#include "core/result.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace temper::actors {

/// One target of one block.
struct AdapterTarget {
  std::size_t tensor = 0;  ///< Index in Layout::tensors() of the tensor that contains it.
  std::int64_t row = 0;    ///< Its first row in that tensor.
  std::int64_t out = 0, in = 0;
  std::int64_t a = 0, b = 0;  ///< Index of the first float of A and of B in the flat array.
};

class AdapterLayout {
 public:
  /// Error InvalidInput: a target that is unknown, repeated or not a linear layer of a block; a
  /// rank above a side of a target; no target. The message starts with the key below model.lora.
  static Result<AdapterLayout> make(const Layout& base, const LoraConfig& lora);

  const LoraConfig& lora() const { return lora_; }
  /// A and B of each target, with the names of peft.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  /// The targets within a tensor of the base, in the order of their rows.
  std::span<const AdapterTarget> targets_in(std::size_t tensor) const;
  const std::vector<AdapterTarget>& targets() const { return targets_; }
  /// Number of floats of the flat array, including padding.
  std::int64_t size() const { return size_; }
  std::int64_t parameters() const;

 private:
  explicit AdapterLayout(const LoraConfig& lora) : lora_(lora) {}
  void add(const AdapterTarget& target, std::string_view layer);

  LoraConfig lora_;
  std::vector<AdapterTarget> targets_;  ///< By tensor.
  std::vector<TensorSpec> tensors_;
  std::int64_t size_ = 0;
};

/// Adds (alpha / rank) B A to the weights, a flat array of the base's layout.
void merge_adapter(const AdapterLayout& adapter,
                   std::span<const float> flat,
                   const Layout& base,
                   std::span<float> weights);

}  // namespace temper::actors
