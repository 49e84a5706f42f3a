// Described types that use every feature of core/describe.hpp, and random values of them.
#pragma once

#include "core/describe.hpp"
#include "core/random.hpp"

namespace temper {
namespace test {

enum class Shape { Round = 0, Square = 3 };

struct Small {
  Tokens tokens{1};
  Shape shape = Shape::Round;
  bool operator==(const Small&) const = default;
  static constexpr std::string_view kName = "small";
};
void describe(auto& v, Small& s) {
  v.field(1, "tokens", s.tokens, {.doc = "How many.", .min = Tokens(0), .max = Tokens(100)});
  v.field(2, "shape", s.shape, {.doc = "Which."});
}

struct Nothing {
  static constexpr std::string_view kName = "nothing";
  bool operator==(const Nothing&) const = default;
};
TEMPER_NO_FIELDS(Nothing)

using Either = std::variant<Nothing, Small>;

struct Everything {
  bool flag = false;
  std::int8_t tiny = 0;
  std::uint64_t big = 0;
  double number = 0.5;
  float small_number = 0.25F;
  std::string text;
  ActorId id;
  Bytes size{0};
  BytesPerSecond rate{1e9};
  Duration wait{0};
  Time at;
  Shape shape = Shape::Round;
  std::optional<std::int32_t> maybe;
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::uint8_t> octets;
  std::vector<std::byte> image;
  std::vector<std::string> words;
  std::vector<CardId> cards;
  std::vector<Small> rows;
  std::map<std::string, Small> named;
  std::map<std::uint32_t, double> histogram;
  std::vector<Either> choices;
  Small inner;
  bool operator==(const Everything&) const = default;
};
void describe(auto& v, Everything& e) {
  v.field(1, "flag", e.flag);
  v.field(2, "tiny", e.tiny);
  v.field(3, "big", e.big);
  v.field(4, "number", e.number);
  v.field(5, "small_number", e.small_number);
  v.field(6, "text", e.text);
  v.field(7, "id", e.id);
  v.field(8, "size", e.size);
  v.field(9, "rate", e.rate);
  v.field(10, "wait", e.wait);
  v.field(11, "at", e.at);
  v.field(12, "shape", e.shape);
  v.field(13, "maybe", e.maybe);
  v.field(14, "tokens", e.tokens);
  v.field(15, "logprobs", e.logprobs);
  v.field(16, "octets", e.octets);
  v.field(17, "image", e.image);
  v.field(18, "words", e.words);
  v.field(19, "cards", e.cards);
  v.field(20, "rows", e.rows);
  v.field(21, "named", e.named);
  v.field(22, "histogram", e.histogram);
  v.field(23, "choices", e.choices);
  v.field(24, "inner", e.inner);
}

inline std::int64_t random_integer(Random& rng) {
  // Every magnitude equally often, so that each width of an encoding is met.
  return static_cast<std::int64_t>(rng.next()) >> rng.below(64);
}
inline std::string random_text(Random& rng) {
  std::string out(rng.below(40), ' ');
  for (char& c : out)
    c = static_cast<char>(' ' + rng.below(95));
  return out;
}
inline Small random_small(Random& rng) {
  return {Tokens(static_cast<std::int64_t>(rng.below(101))),
          rng.chance(0.5) ? Shape::Round : Shape::Square};
}

inline Everything random_everything(Random& rng) {
  Everything e;
  e.flag = rng.chance(0.5);
  e.tiny = static_cast<std::int8_t>(rng.next());
  e.big = static_cast<std::uint64_t>(random_integer(rng));
  e.number = rng.normal() * 1e9;
  e.small_number = static_cast<float>(rng.normal());
  e.text = random_text(rng);
  e.id = ActorId(static_cast<std::uint32_t>(rng.next()));
  e.size = Bytes(random_integer(rng));
  e.rate = BytesPerSecond(rng.uniform() * 1e12);
  e.wait = Duration(random_integer(rng));
  e.at = Time(Duration(random_integer(rng)));
  e.shape = rng.chance(0.5) ? Shape::Round : Shape::Square;
  if (rng.chance(0.5))
    e.maybe = static_cast<std::int32_t>(rng.next());
  for (std::uint64_t n = rng.below(300); n > 0; --n) {
    e.tokens.push_back(static_cast<std::int32_t>(rng.next()));
    e.logprobs.push_back(static_cast<float>(-rng.uniform()));
  }
  for (std::uint64_t n = rng.below(20); n > 0; --n) {
    e.octets.push_back(static_cast<std::uint8_t>(rng.next()));
    e.image.push_back(static_cast<std::byte>(rng.next()));
    e.words.push_back(random_text(rng));
    e.cards.push_back(CardId(static_cast<std::uint32_t>(rng.below(400))));
    e.rows.push_back(random_small(rng));
    e.named[random_text(rng)] = random_small(rng);
    e.histogram[static_cast<std::uint32_t>(rng.below(1000))] = rng.uniform();
    e.choices.push_back(rng.chance(0.5) ? Either(Nothing{}) : Either(random_small(rng)));
  }
  e.inner = random_small(rng);
  return e;
}

}  // namespace test

template <>
struct EnumNames<test::Shape> {
  static constexpr std::array<std::pair<test::Shape, std::string_view>, 2> value{
      {{test::Shape::Round, "round"}, {test::Shape::Square, "square"}}};
};

}  // namespace temper
