// msgpack from describe(): the encoding of messages and of the event log.
//
//   struct        map {field id: value}, in the order of describe(); a reader skips unknown
//                 ids, and missing fields keep their default
//   id, quantity, duration, time, enumeration, integer      integer in its shortest form, or double
//   vector of int32, float, uint8, byte                      bin, little endian
//   other vector; map; optional                              array; map; nil or the value
//   variant of described structs                             [kName, value]
//
// Encoding is canonical: equal values give equal bytes (the hash of the event log depends on it).
// Decoding is safe for hostile input: no exceptions, and no allocation beyond the actual bytes.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"

#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <span>

namespace temper {

static_assert(std::endian::native == std::endian::little, "blobs are copied without byte swapping");

/// Limits of a decoder. `values` counts scalars, strings, blobs and containers.
struct DecodeLimits {
  std::size_t depth = 64;
  std::size_t values = std::size_t{1} << 22;
};

namespace detail {

/// Appends single msgpack values to a string.
class MsgpackSink {
 public:
  explicit MsgpackSink(std::string& out) : out_(out) {}
  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void number(double value);
  void number(float value);
  void string(std::string_view value);
  void binary(const void* data, std::size_t size);
  void array(std::size_t size);
  void map(std::size_t size);

 private:
  std::string& out_;
};

/// One value of a parsed message. Nodes lie in reading order: the first child of a container is the
/// next node, and `end` is the index after its last descendant.
struct MsgpackNode {
  enum class Kind : std::uint8_t {
    Nil,
    Boolean,
    Unsigned,
    Negative,
    Number,
    String,
    Binary,
    Array,
    Map,
    Other
  };
  Kind kind = Kind::Nil;
  std::uint32_t size = 0;  ///< Bytes of a string or blob; elements of an array; pairs of a map.
  std::uint32_t end = 0;
  union {
    std::uint64_t u = 0;
    std::int64_t i;
    double d;
    const char* data;
  };
};
/// Validates the whole message: its format, the limits, and that it is exactly one value without
/// trailing bytes. The nodes point into `bytes`, which must outlive them. Error: Corrupt.
Result<std::vector<MsgpackNode>> parse_msgpack(std::string_view bytes, const DecodeLimits& limits);

/// "expected bin, found a map of 3".
std::string msgpack_mismatch(std::string_view expected, const MsgpackNode& found);

/// Whether a message has no entry for this field.
template <class T>
bool is_left_out(const T& value, const FieldMeta<T>& meta) {
  if constexpr (requires { meta.left_out_if_empty && !value.has_value(); })
    return meta.left_out_if_empty && !value.has_value();
  return false;
}

struct FieldCounter {
  std::size_t count = 0;
  template <class T>
  void field(int, std::string_view, T& value, const std::type_identity_t<FieldMeta<T>>& meta = {}) {
    count += is_left_out(value, meta) ? 0 : 1;
  }
};

template <class T>
struct VariantReader;

}  // namespace detail

class MsgpackWriter {
 public:
  /// Appends to `out`, which outlives the writer.
  explicit MsgpackWriter(std::string& out) : sink_(out) {}

  template <class T>
  void field(int id,
             std::string_view,
             const T& value,
             const std::type_identity_t<FieldMeta<T>>& meta = {}) {
    if (detail::is_left_out(value, meta))
      return;
    sink_.unsigned_integer(static_cast<std::uint64_t>(id));
    write(value);
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      sink_.boolean(value);
    } else if constexpr (std::is_enum_v<T>) {
      static_assert(NamedEnum<T>, "specialize EnumNames for this enumeration");
      sink_.integer(static_cast<std::int64_t>(value));
    } else if constexpr (std::signed_integral<T>) {
      sink_.integer(value);
    } else if constexpr (std::unsigned_integral<T>) {
      sink_.unsigned_integer(value);
    } else if constexpr (std::floating_point<T>) {
      sink_.number(value);
    } else if constexpr (std::same_as<T, std::string>) {
      sink_.string(value);
    } else if constexpr (IdLike<T>) {
      write(value.value());
    } else if constexpr (QuantityLike<T> || std::same_as<T, Duration>) {
      write(value.count());
    } else if constexpr (std::same_as<T, Time>) {
      write(value.time_since_epoch().count());
    } else if constexpr (OptionalLike<T>) {
      value ? write(*value) : sink_.nil();
    } else if constexpr (VectorLike<T>) {
      write_vector(value);
    } else if constexpr (MapLike<T>) {
      sink_.map(value.size());
      for (const auto& [key, element] : value) {
        write(key);
        write(element);
      }
    } else if constexpr (VariantLike<T>) {
      sink_.array(2);
      std::visit(
          [this](const auto& alternative) {
            sink_.string(std::remove_cvref_t<decltype(alternative)>::kName);
            write(alternative);
          },
          value);
    } else {
      static_assert(Described<T>, "no describe() for this type");
      // describe() takes a mutable reference for readers; a writer does not modify it.
      T& fields = const_cast<T&>(value);
      detail::FieldCounter counter;
      describe(counter, fields);
      sink_.map(counter.count);
      describe(*this, fields);
    }
  }

 private:
  template <class E>
  void write_vector(const std::vector<E>& values) {
    if constexpr (BlobElement<E>) {
      sink_.binary(values.data(), values.size() * sizeof(E));
    } else {
      sink_.array(values.size());
      for (const E& element : values)
        write(element);
    }
  }

  detail::MsgpackSink sink_;
};

class MsgpackReader {
 public:
  using Node = detail::MsgpackNode;
  using Kind = Node::Kind;

  explicit MsgpackReader(std::span<const Node> nodes) : nodes_(nodes) {}

  /// Reads the value at node `at`. On failure, error() has the path and the reason.
  template <class T>
  bool read(std::size_t at, T& out) {
    const Node& node = nodes_[at];
    if constexpr (std::same_as<T, bool>) {
      if (node.kind != Kind::Boolean)
        return mismatch("a boolean", node);
      out = node.u != 0;
      return true;
    } else if constexpr (std::is_enum_v<T>) {
      return read_enum(node, out);
    } else if constexpr (std::integral<T>) {
      return read_integer(node, out);
    } else if constexpr (std::floating_point<T>) {
      return read_number(node, out);
    } else if constexpr (std::same_as<T, std::string>) {
      if (node.kind != Kind::String)
        return mismatch("a string", node);
      out.assign(node.data, node.size);
      return true;
    } else if constexpr (IdLike<T> || QuantityLike<T> || std::same_as<T, Duration>) {
      typename T::rep number{};
      if (!read(at, number))
        return false;
      out = T(number);
      return true;
    } else if constexpr (std::same_as<T, Time>) {
      Duration since{};
      if (!read(at, since))
        return false;
      out = Time(since);
      return true;
    } else if constexpr (OptionalLike<T>) {
      out.reset();
      return node.kind == Kind::Nil || read(at, out.emplace());
    } else if constexpr (VectorLike<T>) {
      return read_vector(at, out);
    } else if constexpr (MapLike<T>) {
      return read_map(at, out);
    } else if constexpr (VariantLike<T>) {
      return detail::VariantReader<T>::read(*this, at, out);
    } else {
      static_assert(Described<T>, "no describe() for this type");
      return read_struct(at, out);
    }
  }

  /// Called by describe(): reads the field of the struct that is being read.
  template <class T>
  void field(int id,
             std::string_view name,
             T& value,
             const std::type_identity_t<FieldMeta<T>>& = {}) {
    if (failed_)
      return;
    const std::size_t at = find_field(static_cast<std::uint64_t>(id));
    if (at != kNone && !read(at, value))
      fail_within(name);
  }

  const Node& node(std::size_t at) const { return nodes_[at]; }
  bool mismatch(std::string_view expected, const Node& found);
  bool fail(std::string why);
  /// "items[3].response: expected bin, found nil".
  std::string error() const { return path_.empty() ? error_ : path_ + ": " + error_; }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// The pairs of the map that is being read, and where the last field was found.
  struct Frame {
    std::size_t first = 0;
    std::size_t end = 0;
    std::size_t cursor = 0;
  };

  /// Node of the value with key `id` in the current frame; fast if fields come in the writer's
  /// order.
  std::size_t find_field(std::uint64_t id);
  void fail_within(std::string_view name);
  void fail_at(std::size_t index);

  template <class T>
  bool read_integer(const Node& node, T& out) {
    if (node.kind == Kind::Unsigned && std::in_range<T>(node.u)) {
      out = static_cast<T>(node.u);
      return true;
    }
    if (node.kind == Kind::Negative && std::in_range<T>(node.i)) {
      out = static_cast<T>(node.i);
      return true;
    }
    if (node.kind == Kind::Unsigned || node.kind == Kind::Negative)
      return fail("the integer is out of range");
    return mismatch("an integer", node);
  }

  template <class T>
  bool read_number(const Node& node, T& out) {
    switch (node.kind) {
      case Kind::Number:
        out = static_cast<T>(node.d);
        return true;
      case Kind::Unsigned:
        out = static_cast<T>(node.u);
        return true;
      case Kind::Negative:
        out = static_cast<T>(node.i);
        return true;
      default:
        return mismatch("a number", node);
    }
  }

  template <class E>
  bool read_enum(const Node& node, E& out) {
    static_assert(NamedEnum<E>, "specialize EnumNames for this enumeration");
    std::int64_t number = 0;
    if (!read_integer(node, number))
      return false;
    for (const auto& [value, name] : EnumNames<E>::value) {
      if (static_cast<std::int64_t>(value) == number) {
        out = value;
        return true;
      }
    }
    return fail("unknown enumerator " + std::to_string(number));
  }

  template <class E>
  bool read_vector(std::size_t at, std::vector<E>& out) {
    const Node& node = nodes_[at];
    if constexpr (BlobElement<E>) {
      if (node.kind != Kind::Binary)
        return mismatch("bin", node);
      if (node.size % sizeof(E) != 0)
        return fail("the length of bin is not a multiple of its element size");
      out.resize(node.size / sizeof(E));
      if (node.size > 0)
        std::memcpy(out.data(), node.data, node.size);
      return true;
    } else {
      if (node.kind != Kind::Array)
        return mismatch("an array", node);
      out.clear();
      out.reserve(node.size);
      std::size_t child = at + 1;
      for (std::size_t i = 0; i < node.size; ++i, child = nodes_[child].end) {
        E element{};
        if (!read(child, element)) {
          fail_at(i);
          return false;
        }
        out.push_back(std::move(element));
      }
      return true;
    }
  }

  template <class K, class E>
  bool read_map(std::size_t at, std::map<K, E>& out) {
    const Node& node = nodes_[at];
    if (node.kind != Kind::Map)
      return mismatch("a map", node);
    out.clear();
    std::size_t key_at = at + 1;
    for (std::size_t i = 0; i < node.size; ++i) {
      const std::size_t value_at = nodes_[key_at].end;
      K key{};
      E element{};
      if (!read(key_at, key) || !read(value_at, element)) {
        fail_at(i);
        return false;
      }
      if (!out.emplace(std::move(key), std::move(element)).second)
        return fail("duplicate key");
      key_at = nodes_[value_at].end;
    }
    return true;
  }

  template <class T>
  bool read_struct(std::size_t at, T& out) {
    if (nodes_[at].kind != Kind::Map)
      return mismatch("a map", nodes_[at]);
    const Frame outer = frame_;
    frame_ = {.first = at + 1, .end = nodes_[at].end, .cursor = at + 1};
    describe(*this, out);
    frame_ = outer;
    return !failed_;
  }

  std::span<const Node> nodes_;
  Frame frame_;
  bool failed_ = false;
  std::string path_;
  std::string error_;
};

namespace detail {
template <class... Ts>
struct VariantReader<std::variant<Ts...>> {
  static bool read(MsgpackReader& reader, std::size_t at, std::variant<Ts...>& out) {
    const MsgpackNode& node = reader.node(at);
    if (node.kind != MsgpackNode::Kind::Array || node.size != 2 ||
        reader.node(at + 1).kind != MsgpackNode::Kind::String) {
      return reader.mismatch("[name, value]", node);
    }
    const MsgpackNode& tag = reader.node(at + 1);
    const std::string_view name(tag.data, tag.size);
    bool known = false;
    bool ok = false;
    ((Ts::kName == name && !known &&
      (known = true, ok = reader.read(at + 2, out.template emplace<Ts>()))),
     ...);
    return known ? ok : reader.fail("unknown alternative \"" + std::string(name) + "\"");
  }
};
}  // namespace detail

/// Appends the encoding of `value`.
template <class T>
void encode_to(std::string& out, const T& value) {
  MsgpackWriter(out).write(value);
}

template <class T>
std::string encode(const T& value) {
  std::string out;
  encode_to(out, value);
  return out;
}

/// Decodes one value that spans all of `bytes`. Error: Corrupt, with the path of the field.
template <class T>
Result<T> decode(std::string_view bytes, const DecodeLimits& limits = {}) {
  TEMPER_TRY(const std::vector<detail::MsgpackNode> nodes, detail::parse_msgpack(bytes, limits));
  T out{};
  MsgpackReader reader(nodes);
  if (!reader.read(0, out))
    return corrupt(reader.error());
  return out;
}

}  // namespace temper
