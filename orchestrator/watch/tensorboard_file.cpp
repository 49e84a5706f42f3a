#include "orchestrator/watch/tensorboard_file.hpp"

#include "actors/runtime/process.hpp"
#include "core/replace.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
    table[i] = crc;
  }
  return table;
}();

std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282ead8U;
}

template <class T>
void append_raw(std::string& to, T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  to.append(bytes.data(), bytes.size());
}

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to += static_cast<char>((value & 0x7F) | 0x80);
  to += static_cast<char>(value);
}

// Protobuf: a key is (field << 3) | wire type. 0: varint, 1: 64 bits, 2: bytes, 5: 32 bits.
void append_double(std::string& to, int field, double value) {
  to += static_cast<char>(field << 3 | 1);
  append_raw(to, value);
}
void append_float(std::string& to, int field, float value) {
  to += static_cast<char>(field << 3 | 5);
  append_raw(to, value);
}
void append_number(std::string& to, int field, std::uint64_t value) {
  to += static_cast<char>(field << 3);
  append_varint(to, value);
}
void append_bytes(std::string& to, int field, std::string_view value) {
  to += static_cast<char>(field << 3 | 2);
  append_varint(to, value.size());
  to += value;
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  std::uint32_t crc = ~0U;
  for (const char c : data)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string tensorboard_record(std::string_view data) {
  std::string length;
  append_raw(length, static_cast<std::uint64_t>(data.size()));
  std::string record = length;
  append_raw(record, masked(crc32c(length)));
  record += data;
  append_raw(record, masked(crc32c(data)));
  return record;
}

Result<TensorboardFile> TensorboardFile::create(const fs::path& run_dir, double unix_time) {
  const fs::path folder = (run_dir / kTensorboardFolder).string() + ".partial";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  TEMPER_TRY_STATUS(make_folder(folder));
  const std::string host = actors::host_name();
  TEMPER_TRY(AppendFile file,
             AppendFile::open(folder / fmt::format("events.out.tfevents.{}.{}",
                                                   static_cast<std::int64_t>(unix_time),
                                                   host.empty() ? "host" : host),
                              0));
  std::string event;
  append_double(event, 1, unix_time);
  append_bytes(event, 3, "brain.Event:2");
  TEMPER_TRY_STATUS(file.append(tensorboard_record(event)));
  return TensorboardFile(run_dir / kTensorboardFolder, std::move(file));
}

Status TensorboardFile::put_in_place() {
  return put_folder_in_place(folder_.string() + ".partial", folder_);
}

Status TensorboardFile::add(double unix_time, std::uint64_t step, const FlatMetrics& metrics) {
  std::string summary, value;
  for (const auto& [name, number] : metrics) {
    if (!std::isfinite(number))
      continue;
    value.clear();
    append_bytes(value, 1, name);
    append_float(value, 2, static_cast<float>(number));
    append_bytes(summary, 1, value);
  }
  const bool again = !step_ || step <= *step_;
  step_ = step;
  if (again) {
    std::string start, session;
    append_number(session, 1, 1);
    append_double(start, 1, unix_time);
    append_number(start, 2, step);
    append_bytes(start, 7, session);
    TEMPER_TRY_STATUS(file_.append(tensorboard_record(start)));
  }
  std::string event;
  append_double(event, 1, unix_time);
  append_number(event, 2, step);
  append_bytes(event, 5, summary);
  return file_.append(tensorboard_record(event));
}

}  // namespace temper::orchestrator
