#include "tests/fuzz/targets.hpp"

#include "actors/protocol/catalog.hpp"
#include "core/check.hpp"
#include "core/deflate.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/json_document.hpp"
#include "core/manifest.hpp"
#include "core/msgpack.hpp"
#include "core/temporary_folder.hpp"
#include "core/yaml_tree.hpp"
#include "orchestrator/record/certificate_audit.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/record/summary_audit.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

namespace temper::fuzz {
namespace {

using namespace orchestrator;

/// One folder for the whole process; files in it are written without a sync.
const std::filesystem::path& folder() {
  static const auto* made =
      new temper::TemporaryFolder(temper::TemporaryFolder::create("temper-fuzz-").value());
  return made->path();
}

std::filesystem::path file_with(const char* name, std::string_view bytes) {
  const std::filesystem::path path = folder() / name;
  AppendFile file = AppendFile::open(path, 0).value();
  TEMPER_CHECK(file.append(bytes), "a temporary file can be written");
  return path;
}

/// Reads all of it; what is whole must be whole again when the rest is cut off.
void read_log(const std::filesystem::path& path) {
  const auto count = [](const Record&, const LogPosition&) { return Status(); };
  const auto first = scan_event_log(path, count);
  if (!first)
    return;
  TEMPER_CHECK(cut_event_log(path, *first), "a log can be cut");
  const auto again = scan_event_log(path, count);
  TEMPER_CHECK(again && again->end.kind == LogEnd::Kind::Whole, "what is left of a log is whole");
  TEMPER_CHECK(again->records == first->records && again->hash == first->hash,
               "a cut takes no whole record");
}

void remove_logs() {
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().filename().string().starts_with("events.log"))
      std::filesystem::remove(entry.path());
  }
}

/// Pieces of the bytes, each as long as its first byte says.
std::vector<std::string_view> pieces_of(std::string_view bytes) {
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front()));
    bytes.remove_prefix(1);
    pieces.push_back(bytes.substr(0, length));
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  return pieces;
}

template <class... Ts>
void decode_as(std::size_t which, std::string_view bytes, TypeList<Ts...>) {
  std::size_t at = 0;
  const auto one = [&]<class T>(std::type_identity<T>) {
    if (at++ != which)
      return;
    const auto message = decode<T>(bytes);
    if (!message)
      return;
    const std::string encoded = encode(*message);
    const auto again = decode<T>(encoded);
    TEMPER_CHECK(again && encode(*again) == encoded, "what was decoded is encoded and decoded");
    std::ignore = to_json(*message);
  };
  (one(std::type_identity<Ts>{}), ...);
}

}  // namespace

void log(std::string_view bytes) {
  remove_logs();
  if (!bytes.empty() && bytes.front() % 2 == 0) {
    const std::size_t half = bytes.size() / 2;
    if (bytes.front() % 4 == 0)
      file_with("events.log.2", bytes.substr(half));
    return read_log(file_with("events.log", bytes.substr(1)));
  }
  {
    auto writer = LogWriter::create(folder() / "events.log", {.file_bytes = 200});
    TEMPER_CHECK(writer, "a log can be made");
    for (const std::string_view piece : pieces_of(bytes)) {
      if (!piece.empty())
        TEMPER_CHECK(writer->append(piece), "a record can be appended");
    }
  }
  read_log(folder() / "events.log");
}

void record(std::string_view bytes) {
  const auto one = decode<Record>(bytes);
  if (!one)
    return;
  const std::string encoded = encode(*one);
  const auto again = decode<Record>(encoded);
  TEMPER_CHECK(again && encode(*again) == encoded, "what was decoded is encoded and decoded");
  std::ignore = to_json(*one);
}

void snapshot(std::string_view bytes) {
  if (bytes.empty())
    return;
  const auto sizes = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  SchedulerConfig config;
  config.responses_per_group = 1 + sizes % 4;
  config.groups_per_update = 1 + sizes / 4 % 4;
  config.actors = {{"rollout-0", actors::RoleKind::Rollout, {CardId(0)}, 4},
                   {"reward-0", actors::RoleKind::Reward, {CardId(1)}, 0},
                   {"trainer", actors::RoleKind::Trainer, {CardId(1)}, 0}};
  auto scheduler = Scheduler::restored(config, bytes);
  if (!scheduler)
    return;
  const std::string taken = scheduler->snapshot();
  const auto again = Scheduler::restored(config, taken);
  TEMPER_CHECK(again && again->snapshot() == taken, "a snapshot is restored as it was");
}

void packed(std::string_view bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  static Unpacker unpacker, other;  // kept: most of the time would go into making them
  static Packer packer;
  unpacker.begin();
  other.begin();
  packer.begin();
  std::string piece;
  for (const std::string_view part : pieces_of(bytes)) {
    if (!unpacker.unpack(part, kMost, piece))
      unpacker.begin();
    TEMPER_CHECK(piece.size() <= kMost + 4096, "no more is unpacked than is allowed");
  }
  for (const std::string_view part : pieces_of(bytes)) {
    if (part.empty())
      continue;
    std::string small, back;
    packer.pack(part, small);
    TEMPER_CHECK(other.unpack(small, kMost, back) && back == part, "it is as it was packed");
  }
}

void certificates(std::string_view bytes) {
  const auto path = file_with("certificates.jsonl", bytes);
  std::ignore = check_certificate_chain(path);
  AuditedBatches batches;
  batches.add({0, {}, {{3, 0, 0, 0, 0}, {4, 0, 0, 0, 0}}});
  batches.add({1, {}, {{5, 1, 1, 1, 1}}});
  AuditReport report;
  report.steps = 2;
  report.ended = true;
  report.bound = 1;
  std::ignore = audit_certificates(path, batches, report);
}

void manifest(std::string_view bytes) {
  const auto parsed = parse_manifest(bytes);
  if (parsed)
    TEMPER_CHECK(to_text(*parsed) == bytes, "a manifest is what it is made to, byte for byte");
}

void summary(std::string_view bytes) {
  std::ignore = audit_times(file_with("summary.json", bytes), {});
}

void json(std::string_view bytes) {
  std::ignore = parse_json(bytes);
}

void yaml(std::string_view bytes) {
  const std::size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::vector<std::string> sets{std::string(bytes.substr(0, line))};
  const YamlDocument document("fuzz.yaml", bytes.substr(line), sets);
  for (const YamlIssue& issue : document.issues())
    std::ignore = document.location(issue.place);
}

void message(std::string_view bytes) {
  if (!bytes.empty())
    decode_as(static_cast<unsigned char>(bytes.front()), bytes.substr(1), actors::AllMessages{});
}

}  // namespace temper::fuzz
