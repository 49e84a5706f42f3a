#include "orchestrator/run/processes/key_ring.hpp"

#include "core/clock.hpp"
#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/secret.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"
#include "orchestrator/run/processes/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace temper::orchestrator {

void describe(auto& v, HeadIdentity& h) {
  v.field(1, "run", h.run);
  v.field(2, "secret", h.secret);
  v.field(3, "key", h.key);
}
void describe(auto& v, GrantedKey& k) {
  v.field(1, "name", k.name);
  v.field(2, "open", k.open);
  v.field(3, "place", k.place);
  v.field(4, "made", k.made);
  v.field(5, "revoked", k.revoked);
}
void describe(auto& v, KeyList& l) {
  v.field(1, "keys", l.keys);
}

namespace {

namespace fs = std::filesystem;

/// Names a file.
bool is_name(const std::string& name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.size() <= 64 && name.front() != '.' &&
         name.find_first_not_of(kAllowed) == std::string::npos;
}

/// Changes when the file is replaced.
std::string stamp_of(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return {};
  return fmt::format(
      "{}.{}.{}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

/// Held while the ring is read, changed and written: two commands at once both count.
Result<FileDescriptor> lock_ring(const fs::path& folder) {
  const fs::path path = folder / ".lock";
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.is_open() || ::flock(fd.get(), LOCK_EX) != 0)
    return io_error("cannot lock " + path.string(), errno);
  return fd;
}

}  // namespace

Result<KeyRing> KeyRing::open(const fs::path& run_dir, Make make) {
  KeyRing ring(run_dir / "keys");
  std::error_code ignored;
  if (!fs::exists(ring.folder_ / "head", ignored)) {
    if (make == Make::No) {
      return Error{ErrorCode::NotFound,
                   fmt::format("{} has no keys; `temper keys make {}` makes them",
                               run_dir.string(),
                               run_dir.string())};
    }
    TEMPER_TRY_STATUS(make_folder(ring.folder_));
    fs::permissions(ring.folder_, fs::perms::owner_all, ignored);
    TEMPER_TRY(const FileDescriptor lock, lock_ring(ring.folder_));
    if (!fs::exists(ring.folder_ / "head", ignored)) {
      TEMPER_TRY_STATUS(write_file_atomically(ring.folder_ / "ring", to_yaml(KeyList{})));
      const HeadIdentity head{make_secret(), make_secret(), actors::KeyPair::create()};
      TEMPER_TRY_STATUS(write_file_atomically(ring.folder_ / "head", to_yaml(head)));
    }
  }
  TEMPER_TRY(ring.head_, read_own_yaml_file<HeadIdentity>(ring.folder_ / "head"));
  TEMPER_TRY_STATUS(ring.read());
  return ring;
}

Status KeyRing::read() {
  stamp_ = stamp_of(folder_ / "ring");  // before the read: later changes are seen next time
  TEMPER_TRY(list_, read_own_yaml_file<KeyList>(folder_ / "ring"));
  return {};
}

Status KeyRing::write() {
  return write_file_atomically(folder_ / "ring", to_yaml(list_));
}

Result<bool> KeyRing::refresh() {
  if (stamp_of(folder_ / "ring") == stamp_)
    return false;
  TEMPER_TRY_STATUS(read());
  return true;
}

Result<fs::path> KeyRing::make(std::string name, const std::string& place) {
  TEMPER_TRY(const FileDescriptor lock, lock_ring(folder_));
  TEMPER_TRY_STATUS(read());
  const auto taken = [this](const std::string& n) {
    return std::ranges::find(list_.keys, n, &GrantedKey::name) != list_.keys.end();
  };
  for (std::size_t i = 1; name.empty(); ++i) {
    if (const std::string next = fmt::format("key-{}", i); !taken(next))
      name = next;
  }
  if (!is_name(name)) {
    return invalid_input(fmt::format(
        "\"{}\" names no key: 1 to 64 letters, digits, '-', '_' or '.', since it names a file",
        name));
  }
  if (taken(name))
    return invalid_input(fmt::format("there is a key {} already", name));
  const actors::Credentials credentials{
      head_.secret, head_.key.open, actors::KeyPair::create(), head_.run, name};
  const fs::path path = folder_ / (name + ".key");
  TEMPER_TRY_STATUS(actors::write_credentials(path, credentials));
  list_.keys.push_back({name, credentials.own.open, place, calendar_stamp()});
  TEMPER_TRY_STATUS(write());
  return path;
}

Status KeyRing::revoke(const std::string& name) {
  TEMPER_TRY(const FileDescriptor lock, lock_ring(folder_));
  TEMPER_TRY_STATUS(read());
  const auto it = std::ranges::find(list_.keys, name, &GrantedKey::name);
  if (it == list_.keys.end())
    return Error{ErrorCode::NotFound, fmt::format("there is no key {}", name)};
  if (!it->revoked.empty())
    return invalid_input(fmt::format("{} was revoked at {} already", name, it->revoked));
  it->revoked = calendar_stamp();
  TEMPER_TRY_STATUS(write());
  std::error_code ignored;
  fs::remove(folder_ / (name + ".key"), ignored);
  return {};
}

Result<std::uint64_t> KeyRing::incarnation() const {
  const fs::path path = folder_ / "incarnation";
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return std::uint64_t{0};
  TEMPER_TRY(const std::string text, read_file(path));
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    return corrupt(path.string() + " holds no number");
  return number;
}

Result<std::uint64_t> KeyRing::begin_incarnation() {
  TEMPER_TRY(const FileDescriptor lock, lock_ring(folder_));
  TEMPER_TRY(const std::uint64_t last, incarnation());
  TEMPER_TRY_STATUS(write_file_atomically(folder_ / "incarnation", fmt::format("{}\n", last + 1)));
  return last + 1;
}

bool covers(const std::string& place, const std::string& slot) {
  return place == "any" || place == slot || slot.starts_with(place + "-");
}

}  // namespace temper::orchestrator
