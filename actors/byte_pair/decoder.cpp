#include "actors/byte_pair/decoder.hpp"

#include "actors/byte_pair/byte_characters.hpp"
#include "actors/byte_pair/unicode.hpp"
#include "core/json_document.hpp"

#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

namespace temper::actors {
namespace {

constexpr std::string_view kReplacementCharacter = "\ufffd";

/// The byte that a token such as <0xE2> stands for.
std::optional<char> fallback_byte(std::string_view token) {
  constexpr std::size_t kLength = 6;
  unsigned value = 0;
  if (token.size() != kLength || !token.starts_with("<0x") || token.back() != '>')
    return std::nullopt;
  const char* const end = token.data() + kLength - 1;
  const auto parsed = std::from_chars(token.data() + 3, end, value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return std::nullopt;
  return static_cast<char>(value);
}

/// The text of a run of bytes. If they are not UTF-8, each of them becomes U+FFFD.
std::string text_of(const std::string& bytes) {
  if (check_utf8(bytes))
    return bytes;
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out += kReplacementCharacter;
  return out;
}

std::string joined(const std::vector<std::string>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), std::string());
}

}  // namespace

Result<Decoder> Decoder::parse(const Section& section) {
  if (section.is_null())
    return section.unsupported();
  Decoder made;
  for (const Section& part : section.steps("decoders")) {
    TEMPER_TRY(Step step, parse_step(part));
    made.from_bytes_ = made.from_bytes_ || std::holds_alternative<ByteLevel>(step);
    made.steps_.push_back(std::move(step));
  }
  return made;
}

Result<Decoder::Step> Decoder::parse_step(const Section& step) {
  const std::string type = step.type();
  if (type == "ByteLevel")
    return Step(ByteLevel{});
  if (type == "ByteFallback")
    return Step(ByteFallback{});
  if (type == "Fuse")
    return Step(Fuse{});
  if (type == "Metaspace")
    return Metaspace::parse(step).transform([](Metaspace made) { return Step(std::move(made)); });
  if (type == "Replace")
    return Replacement::parse(step).transform(
        [](Replacement made) { return Step(std::move(made)); });
  if (type != "Strip")
    return step.unsupported();
  Strip strip;
  TEMPER_TRY(strip.content, step.character("content"));
  TEMPER_TRY(strip.start, step.count("start"));
  TEMPER_TRY(strip.stop, step.count("stop"));
  return Step(std::move(strip));
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const Step& step : steps_)
    std::visit([&](const auto& kind) { apply(kind, tokens); }, step);
  return joined(tokens);
}

void Decoder::apply(const ByteLevel&, std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens)
    bytes += from_byte_characters(token);
  tokens = {to_valid_utf8(bytes)};
}

void Decoder::apply(const ByteFallback&, std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto end_run = [&] {
    if (!bytes.empty())
      out.push_back(text_of(std::exchange(bytes, {})));
  };
  for (std::string& token : tokens) {
    if (const auto byte = fallback_byte(token)) {
      bytes += *byte;
      continue;
    }
    end_run();
    out.push_back(std::move(token));
  }
  end_run();
  tokens = std::move(out);
}

void Decoder::apply(const Fuse&, std::vector<std::string>& tokens) {
  tokens = {joined(tokens)};
}

void Decoder::apply(const Strip& step, std::vector<std::string>& tokens) {
  for (std::string& token : tokens) {
    std::string_view rest = token;
    for (std::uint64_t i = 0; i < step.start && rest.starts_with(step.content); ++i)
      rest.remove_prefix(step.content.size());
    for (std::uint64_t i = 0; i < step.stop && rest.ends_with(step.content); ++i)
      rest.remove_suffix(step.content.size());
    token = std::string(rest);
  }
}

void Decoder::apply(const Replacement& step, std::vector<std::string>& tokens) {
  for (std::string& token : tokens)
    token = step.apply(token);
}

void Decoder::apply(const Metaspace& step, std::vector<std::string>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = step.decode(tokens[i], i == 0 ? TextPlace::Start : TextPlace::Later);
}

}  // namespace temper::actors
