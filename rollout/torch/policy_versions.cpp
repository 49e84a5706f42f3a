#include "rollout/torch/policy_versions.hpp"

#include "core/check.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::rollout {

using actors::Adapter;
using actors::InferenceWeights;

Bytes PolicyVersions::Version::bytes() const {
  return (weights ? weights->bytes() : Bytes(0)) + (adapter ? adapter->values().bytes() : Bytes(0));
}

Result<PolicyVersions> PolicyVersions::make(const actors::Layout& layout,
                                            std::filesystem::path base) {
  std::optional<actors::AdapterLayout> adapter;
  if (layout.model().lora) {
    TEMPER_TRY(adapter, actors::AdapterLayout::make(layout, *layout.model().lora));
  }
  return PolicyVersions(layout, std::move(base), std::move(adapter));
}

Result<PolicyVersions::Staged> PolicyVersions::read(PolicyVersion version,
                                                    std::span<const std::byte> image,
                                                    bool with_base) {
  Staged staged{version, {}, {}};
  if (!adapter_layout_) {
    TEMPER_TRY(staged.policy.weights, InferenceWeights::from_image(layout_, image));
    return staged;
  }
  TEMPER_TRY(staged.policy.adapter, Adapter::from_image(*adapter_layout_, image));
  if (with_base) {
    TEMPER_TRY(const auto folder, actors::ModelFolder::open(base_, layout_.model().ignore));
    TEMPER_TRY(staged.base, InferenceWeights::from_folder(layout_, folder));
  }
  return staged;
}

Status PolicyVersions::stage(PolicyVersion version, std::span<const std::byte> image) {
  bool with_base = false;
  {
    const std::lock_guard lock(staging_);
    with_base = adapter_layout_ && !frozen_;
  }
  auto staged = read(version, image, with_base);
  if (!staged)
    return std::move(staged).error().within(fmt::format("weights of version {}", version));
  const std::lock_guard lock(staging_);
  staged_ = *std::move(staged);
  return {};
}

Status PolicyVersions::commit(PolicyVersion version) {
  const std::lock_guard lock(staging_);
  if (!staged_ || staged_->version != version) {
    const std::string staged =
        staged_ ? fmt::format("version {}", staged_->version) : std::string("nothing");
    return invalid_input(fmt::format("commit of version {}: {} is staged", version, staged));
  }
  if (version < version_)
    return invalid_input(
        fmt::format("commit of version {}: the engine already has version {}", version, version_));
  held_.insert_or_assign(version, std::move(staged_->policy));
  if (staged_->base)
    frozen_ = std::move(staged_->base);
  version_ = version;
  staged_.reset();
  return {};
}

void PolicyVersions::reset() {
  const std::lock_guard lock(staging_);
  staged_.reset();
  version_ = PolicyVersion(0);
}

std::vector<PolicyPass> PolicyVersions::passes(std::span<const VersionRows> rows) const {
  std::vector<PolicyPass> out;
  std::vector<actors::AdapterRows> adapters;
  std::int64_t adapted = 0;
  for (const VersionRows& own : rows) {
    const auto held = held_.find(own.version);
    TEMPER_CHECK(held != held_.end(), "the engine does not hold this version");
    if (const Version& policy = held->second; policy.adapter) {
      adapters.push_back({&*policy.adapter, own.rows});
      adapted += own.rows;
    } else {
      out.push_back({*policy.weights, own.rows});
    }
  }
  if (!adapters.empty())
    out.push_back({{*frozen_, std::move(adapters)}, adapted});
  return out;
}

void PolicyVersions::drop_others(const std::set<PolicyVersion>& used) {
  const std::lock_guard lock(staging_);
  std::erase_if(held_, [&](const auto& held) {
    return held.first != version_ && !used.contains(held.first);
  });
}

void PolicyVersions::free() {
  const std::lock_guard lock(staging_);
  held_.clear();
  if (staged_ && frozen_ && !staged_->base)
    staged_->base = std::move(frozen_);  // The staged adapter needs it.
  frozen_.reset();
}

Bytes PolicyVersions::bytes() const {
  const std::lock_guard lock(staging_);
  Bytes sum(0);
  for (const auto& [version, policy] : held_)
    sum += policy.bytes();
  if (frozen_)
    sum += frozen_->bytes();
  if (staged_)
    sum += staged_->policy.bytes() + (staged_->base ? staged_->base->bytes() : Bytes(0));
  return sum;
}

}  // namespace temper::rollout
