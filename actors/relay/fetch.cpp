#include "actors/relay/fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::actors {

Fetch::Fetch(const WeightsHandle& announced,
             std::size_t sources,
             Duration patience,
             ChunkAssembler image,
             Time now)
    : announced_(announced), sources_(sources), patience_(patience), image_(std::move(image)) {
  since_ = heard_ = now;
  if (sources > 0)
    ask_at_ = now;
}

Result<Fetch> Fetch::start(const WeightsHandle& announced,
                           std::size_t sources,
                           Duration patience,
                           Time now) {
  TEMPER_TRY(auto image, ChunkAssembler::start(announced, kLargestImage));
  return Fetch(announced, sources, patience, std::move(image), now);
}

std::optional<std::size_t> Fetch::source() const {
  return at_ < sources_ ? std::optional(at_) : std::nullopt;
}

void Fetch::switch_source(std::size_t source, Time now) {
  at_ = source;
  since_ = heard_ = now;
  ask_at_ = now;
}

std::optional<Fetch::Request> Fetch::next(Time now) {
  if (is_whole())
    return std::nullopt;
  if (source() && now - heard_ >= patience_)
    switch_source(at_ + 1, now);
  if (!ask_at_ || now < *ask_at_)
    return std::nullopt;
  ask_at_.reset();
  return Request{source(), have_};
}

std::optional<Time> Fetch::deadline() const {
  if (is_whole())
    return std::nullopt;
  if (!source())
    return ask_at_;
  const Time silent = heard_ + patience_;
  return ask_at_ ? std::min(*ask_at_, silent) : silent;
}

void Fetch::refused(Refusal how, Time now) {
  if (!source() || is_whole())
    return;
  heard_ = now;
  if (how == Refusal::Never || now - since_ >= patience_)
    return switch_source(at_ + 1, now);
  ask_at_ = now + kAgain;
}

Result<bool> Fetch::add(const WeightsChunk& chunk, Time now) {
  if (chunk.version != announced_.version || chunk.offset < have_)
    return false;  // belongs to a replaced announcement, or comes from a source given up
  Status status = chunk.offset == have_
                      ? image_.add(chunk)
                      : invalid_input(fmt::format("weights.chunk: offset {} of weights version {}, "
                                                  "expected offset {}",
                                                  chunk.offset,
                                                  chunk.version,
                                                  have_));
  if (!status) {
    if (!source())
      return std::move(status).error();
    switch_source(at_ + 1, now);
    return false;
  }
  have_ += chunk.data.size();
  heard_ = now;
  return true;
}

Result<std::optional<std::vector<std::byte>>> Fetch::take(Time now) {
  auto image = std::move(image_).take();
  if (image)
    return std::optional(*std::move(image));
  if (anew_ || sources_ == 0)
    return image.error();
  anew_ = true;
  TEMPER_TRY(image_, ChunkAssembler::start(announced_, kLargestImage));
  have_ = 0;
  switch_source(sources_, now);
  return std::optional<std::vector<std::byte>>();
}

}  // namespace temper::actors
