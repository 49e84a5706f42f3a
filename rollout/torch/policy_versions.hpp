// The weights that an engine generates with: the current version, older ones that still have
// responses, and the next one beside them.
//
// Without `model.lora`, a version is a complete set of weights. With it, a version is an adapter:
// the weights of the base are read once and stay as they are, so any version may follow any other,
// the engine holds one copy of the weights, and one pass computes rows of several versions.
#pragma once

#include "actors/model_folder/adapter_layout.hpp"
#include "actors/policy/weights.hpp"
#include "core/ids.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace temper::rollout {

/// Consecutive rows of a pass that one version computes.
struct VersionRows {
  PolicyVersion version;
  std::int64_t rows = 0;
};

/// Rows that one pass of the network computes.
struct PolicyPass {
  actors::WeightsView weights;
  std::int64_t rows = 0;
};

class PolicyVersions {
 public:
  /// `base`: folder of the base model, which is read only for adapters. Error InvalidInput: targets
  /// that the model does not have.
  static Result<PolicyVersions> make(const actors::Layout& layout, std::filesystem::path base);
  PolicyVersions(PolicyVersions&& other) noexcept
      : layout_(other.layout_), base_(other.base_), adapter_layout_(other.adapter_layout_) {}

  /// May be called from another thread than the other functions. Errors: Corrupt, naming the
  /// tensor; those of reading the base.
  Status stage(PolicyVersion version, std::span<const std::byte> image);
  /// Makes it the current version; older ones are kept until drop_others(). Error InvalidInput:
  /// another version is staged, or the version is older than the current one.
  Status commit(PolicyVersion version);
  PolicyVersion version() const { return version_; }
  /// Forgets the staged version, and that any version was committed.
  void reset();

  /// False until the first commit, and after free().
  bool present() const { return held_.contains(version_); }
  /// The fewest passes that compute these rows in this order: one for each version, or one for all
  /// adapters. Valid until the next commit(), drop_others() or free(). Requires: each version is
  /// held, and has rows.
  std::vector<PolicyPass> passes(std::span<const VersionRows> rows) const;
  /// Drops every version but the current one and those in `used`.
  void drop_others(const std::set<PolicyVersion>& used);
  /// Versions whose weights are held, the staged one not counted.
  std::size_t held() const { return held_.size(); }
  /// Frees the weights of all versions. Those of the base are read again by the next stage(),
  /// unless a version is staged already, which keeps them.
  void free();
  Bytes bytes() const;

 private:
  struct Version {
    std::optional<actors::InferenceWeights> weights;
    std::optional<actors::Adapter> adapter;
    Bytes bytes() const;
  };
  struct Staged {
    PolicyVersion version;
    Version policy;
    std::optional<actors::InferenceWeights> base;  ///< Read because the engine had none.
  };

  PolicyVersions(const actors::Layout& layout,
                 std::filesystem::path base,
                 std::optional<actors::AdapterLayout> adapter)
      : layout_(layout), base_(std::move(base)), adapter_layout_(std::move(adapter)) {}
  Result<Staged> read(PolicyVersion version, std::span<const std::byte> image, bool with_base);

  const actors::Layout layout_;
  const std::filesystem::path base_;
  const std::optional<actors::AdapterLayout> adapter_layout_;

  std::map<PolicyVersion, Version> held_;  ///< Changed under staging_.
  PolicyVersion version_;
  mutable std::mutex staging_;
  std::optional<Staged> staged_;                    ///< Under staging_.
  std::optional<actors::InferenceWeights> frozen_;  ///< The base; changed under staging_.
};

}  // namespace temper::rollout
