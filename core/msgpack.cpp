// The only file that includes msgpack-cxx. Its parser calls a visitor per value, so nothing is
// allocated for a container before its elements have been parsed.
#include "core/msgpack.hpp"

#include <fmt/format.h>
#include <msgpack/pack.hpp>
#include <msgpack/parse.hpp>
#include <msgpack/unpack.hpp>

#include <algorithm>
#include <exception>

namespace temper {
namespace detail {
namespace {

using namespace std::string_view_literals;

struct StringStream {
  std::string& out;
  void write(const char* data, std::size_t size) { out.append(data, size); }
};

class NodeBuilder {
 public:
  NodeBuilder(std::vector<MsgpackNode>& nodes, const DecodeLimits& limits)
      : nodes_(nodes), limits_(limits) {}

  const std::string& failure() const { return failure_; }
  /// True if every open container has ended.
  bool complete() const { return open_.empty() && !nodes_.empty(); }

  void init() {}
  bool visit_nil() { return add(MsgpackNode::Kind::Nil); }
  bool visit_boolean(bool value) {
    return add(MsgpackNode::Kind::Boolean) && (nodes_.back().u = value ? 1 : 0, true);
  }
  bool visit_positive_integer(std::uint64_t value) {
    return add(MsgpackNode::Kind::Unsigned) && (nodes_.back().u = value, true);
  }
  bool visit_negative_integer(std::int64_t value) {
    // A non-canonical peer may send a positive number in a signed form.
    if (value >= 0)
      return visit_positive_integer(static_cast<std::uint64_t>(value));
    return add(MsgpackNode::Kind::Negative) && (nodes_.back().i = value, true);
  }
  bool visit_float32(float value) { return visit_float64(static_cast<double>(value)); }
  bool visit_float64(double value) {
    return add(MsgpackNode::Kind::Number) && (nodes_.back().d = value, true);
  }
  bool visit_str(const char* data, std::uint32_t size) {
    return add(MsgpackNode::Kind::String, size) && (nodes_.back().data = data, true);
  }
  bool visit_bin(const char* data, std::uint32_t size) {
    return add(MsgpackNode::Kind::Binary, size) && (nodes_.back().data = data, true);
  }
  bool visit_ext(const char* data, std::uint32_t size) {
    return add(MsgpackNode::Kind::Other, size) && (nodes_.back().data = data, true);
  }
  bool start_array(std::uint32_t size) { return begin(MsgpackNode::Kind::Array, size); }
  bool start_map(std::uint32_t pairs) { return begin(MsgpackNode::Kind::Map, pairs); }
  bool end_array() { return end(); }
  bool end_map() { return end(); }
  bool start_array_item() { return true; }
  bool end_array_item() { return true; }
  bool start_map_key() { return true; }
  bool end_map_key() { return true; }
  bool start_map_value() { return true; }
  bool end_map_value() { return true; }
  void parse_error(std::size_t, std::size_t at) {
    failure_ = fmt::format("invalid msgpack at byte {}", at);
  }
  void insufficient_bytes(std::size_t, std::size_t) {
    if (failure_.empty())
      failure_ = "the message ends in the middle of a value";
  }
  bool referenced() const { return true; }
  void set_referenced(bool) {}

 private:
  bool add(MsgpackNode::Kind kind, std::uint32_t size = 0) {
    if (nodes_.size() >= limits_.values) {
      failure_ = fmt::format("more than {} values", limits_.values);
      return false;
    }
    MsgpackNode& node = nodes_.emplace_back();
    node.kind = kind;
    node.size = size;
    node.end = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }
  bool begin(MsgpackNode::Kind kind, std::uint32_t size) {
    if (open_.size() >= limits_.depth) {
      failure_ = fmt::format("nested deeper than {}", limits_.depth);
      return false;
    }
    if (!add(kind, size))
      return false;
    open_.push_back(nodes_.size() - 1);
    return true;
  }
  bool end() {
    nodes_[open_.back()].end = static_cast<std::uint32_t>(nodes_.size());
    open_.pop_back();
    return true;
  }

  std::vector<MsgpackNode>& nodes_;
  const DecodeLimits limits_;
  std::vector<std::size_t> open_;
  std::string failure_;
};

}  // namespace

void MsgpackSink::nil() {
  StringStream stream{out_};
  msgpack::packer(stream).pack_nil();
}
void MsgpackSink::boolean(bool value) {
  StringStream stream{out_};
  value ? msgpack::packer(stream).pack_true() : msgpack::packer(stream).pack_false();
}
void MsgpackSink::integer(std::int64_t value) {
  if (value >= 0)
    return unsigned_integer(static_cast<std::uint64_t>(value));
  StringStream stream{out_};
  msgpack::packer(stream).pack_int64(value);
}
void MsgpackSink::unsigned_integer(std::uint64_t value) {
  if (value < 0x80)  // one byte: most field numbers and many values
    return out_.push_back(static_cast<char>(value));
  StringStream stream{out_};
  msgpack::packer(stream).pack_uint64(value);
}
// msgpack-cxx tests whether a number is an integer by converting it to uint64, which overflows for
// 2^64; these overloads write 2^64 directly.
void MsgpackSink::number(double value) {
  if (value == 0x1p64) {
    out_ += "\xcb\x43\xf0\0\0\0\0\0\0"sv;
    return;
  }
  StringStream stream{out_};
  msgpack::packer(stream).pack_double(value);
}
void MsgpackSink::number(float value) {
  if (value == 0x1p64F) {
    out_ += "\xca\x5f\x80\0\0"sv;
    return;
  }
  StringStream stream{out_};
  msgpack::packer(stream).pack_float(value);
}
void MsgpackSink::string(std::string_view value) {
  StringStream stream{out_};
  const auto size = static_cast<std::uint32_t>(value.size());
  TEMPER_CHECK(size == value.size(), "a string must be smaller than 4 GiB");
  msgpack::packer(stream).pack_str(size).pack_str_body(value.data(), size);
}
void MsgpackSink::binary(const void* data, std::size_t bytes) {
  StringStream stream{out_};
  const auto size = static_cast<std::uint32_t>(bytes);
  TEMPER_CHECK(size == bytes, "a blob must be smaller than 4 GiB");
  msgpack::packer(stream).pack_bin(size).pack_bin_body(static_cast<const char*>(data), size);
}
void MsgpackSink::array(std::size_t size) {
  StringStream stream{out_};
  TEMPER_CHECK(size <= UINT32_MAX, "an array must have fewer than 2^32 elements");
  msgpack::packer(stream).pack_array(static_cast<std::uint32_t>(size));
}
void MsgpackSink::map(std::size_t size) {
  StringStream stream{out_};
  TEMPER_CHECK(size <= UINT32_MAX, "a map must have fewer than 2^32 pairs");
  msgpack::packer(stream).pack_map(static_cast<std::uint32_t>(size));
}

Result<std::vector<MsgpackNode>> parse_msgpack(std::string_view bytes, const DecodeLimits& limits) {
  try {
    std::vector<MsgpackNode> nodes;
    nodes.reserve(std::min<std::size_t>({bytes.size(), 512, limits.values}));
    NodeBuilder builder(nodes, limits);
    std::size_t offset = 0;
    const bool parsed = msgpack::parse(bytes.data(), bytes.size(), offset, builder);
    if (!builder.failure().empty())
      return corrupt(builder.failure());
    if (!parsed || !builder.complete())
      return corrupt("invalid msgpack");
    if (offset != bytes.size())
      return corrupt(fmt::format("{} unexpected bytes after the value", bytes.size() - offset));
    return nodes;
  } catch (const std::exception& e) {  // msgpack-cxx throws its own types.
    return corrupt(fmt::format("invalid msgpack: {}", e.what()));
  }
}

std::string msgpack_mismatch(std::string_view expected, const MsgpackNode& found) {
  using Kind = MsgpackNode::Kind;
  const auto what = [&]() -> std::string {
    switch (found.kind) {
      case Kind::Nil:
        return "nil";
      case Kind::Boolean:
        return "a boolean";
      case Kind::Unsigned:
      case Kind::Negative:
        return "an integer";
      case Kind::Number:
        return "a float";
      case Kind::String:
        return fmt::format("a string of {} bytes", found.size);
      case Kind::Binary:
        return fmt::format("bin of {} bytes", found.size);
      case Kind::Array:
        return fmt::format("an array of {}", found.size);
      case Kind::Map:
        return fmt::format("a map of {}", found.size);
      case Kind::Other:
        break;
    }
    return "an extension type";
  }();
  return fmt::format("expected {}, found {}", expected, what);
}

}  // namespace detail

bool MsgpackReader::mismatch(std::string_view expected, const Node& found) {
  return fail(detail::msgpack_mismatch(expected, found));
}

bool MsgpackReader::fail(std::string what) {
  if (!failed_) {
    failed_ = true;
    error_ = std::move(what);
  }
  return false;
}

void MsgpackReader::fail_within(std::string_view name) {
  const bool joined = !path_.empty() && path_.front() != '[';
  path_.insert(0, std::string(name) + (joined ? "." : ""));
}

void MsgpackReader::fail_at(std::size_t index) {
  const bool joined = !path_.empty() && path_.front() != '[';
  path_.insert(0, fmt::format("[{}]{}", index, joined ? "." : ""));
}

std::size_t MsgpackReader::find_field(std::uint64_t id) {
  const auto value_under = [&](std::size_t key) {
    const Node& node = nodes_[key];
    return node.kind == Kind::Unsigned && node.u == id ? node.end : kNone;
  };
  const auto search = [&](std::size_t from, std::size_t to) {
    for (std::size_t key = from; key < to;) {
      const std::size_t next_key = nodes_[nodes_[key].end].end;
      if (const std::size_t value = value_under(key); value != kNone) {
        frame_.cursor = next_key;
        return value;
      }
      key = next_key;
    }
    return kNone;
  };
  const std::size_t cursor = frame_.cursor;
  const std::size_t ahead = search(cursor, frame_.end);
  return ahead != kNone ? ahead : search(frame_.first, cursor);
}

}  // namespace temper
