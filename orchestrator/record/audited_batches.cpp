#include "orchestrator/record/audited_batches.hpp"

#include "core/check.hpp"

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Varint: seven bits per byte, so small numbers take one byte. Negative differences wrap around.
void put(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

class Cursor {
 public:
  Cursor(const std::string& bytes, std::size_t at) : bytes_(bytes), at_(at) {}
  std::uint64_t take() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80)
        return value;
    }
  }

 private:
  const std::string& bytes_;
  std::size_t at_;
};

/// A version is stored as its distance from the step; none as 0.
std::uint64_t behind(std::uint64_t step, const std::optional<std::uint64_t>& version) {
  return version ? step - *version + 1 : 0;
}
std::optional<std::uint64_t> version(std::uint64_t step, std::uint64_t behind) {
  return behind == 0 ? std::nullopt : std::optional(step - (behind - 1));
}

}  // namespace

void AuditedBatches::add(const AuditedBatch& batch) {
  TEMPER_CHECK(begins_.empty() || begins_.back().step <= batch.step, "batches are added in order");
  begins_.push_back({batch.step, bytes_.size()});
  put(bytes_, batch.bound ? *batch.bound + 1 : 0);
  put(bytes_, batch.groups.size());
  std::uint64_t before = 0;
  for (const AuditedBatch::Group& g : batch.groups) {
    put(bytes_, g.id - std::exchange(before, g.id));
    put(bytes_, batch.step - g.dispatched);
    put(bytes_, batch.step - g.age_from);
    put(bytes_, behind(batch.step, g.oldest));
    put(bytes_, behind(batch.step, g.newest));
  }
}

AuditedBatch AuditedBatches::at(std::size_t at) const {
  const Begin begin = begins_.at(at);
  Cursor cursor(bytes_, begin.byte);
  AuditedBatch batch{begin.step, {}, {}};
  if (const std::uint64_t bound = cursor.take(); bound > 0)
    batch.bound = bound - 1;
  batch.groups.resize(cursor.take());
  std::uint64_t id = 0;
  for (AuditedBatch::Group& g : batch.groups) {
    g.id = id += cursor.take();
    g.dispatched = begin.step - cursor.take();
    g.age_from = begin.step - cursor.take();
    g.oldest = version(begin.step, cursor.take());
    g.newest = version(begin.step, cursor.take());
  }
  return batch;
}

std::optional<std::size_t> AuditedBatches::find(std::uint64_t step) const {
  const auto it = std::ranges::lower_bound(begins_, step, {}, &Begin::step);
  if (it == begins_.end() || it->step != step)
    return std::nullopt;
  return static_cast<std::size_t>(it - begins_.begin());
}

void AuditedBatches::drop_from(std::uint64_t step) {
  const auto it = std::ranges::lower_bound(begins_, step, {}, &Begin::step);
  if (it == begins_.end())
    return;
  bytes_.resize(it->byte);
  begins_.erase(it, begins_.end());
}

}  // namespace temper::orchestrator
