#include "cli/launch/keys_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "orchestrator/run/processes/key_ring.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>

namespace temper::cli {
namespace {

using orchestrator::KeyRing;

struct KeysOptions {
  std::string action;
  std::string run_dir;
  std::vector<std::string> names;
  std::string place = "any";
  int count = 1;
  bool json = false;
};

struct ListedKey {
  std::string name, place, made, revoked, open;
};
void describe(auto& v, ListedKey& k) {
  v.field(1, "name", k.name);
  v.field(2, "place", k.place);
  v.field(3, "made", k.made);
  v.field(4, "revoked", k.revoked);
  v.field(5, "open", k.open);
}
struct KeyListing {
  std::string run;
  std::vector<ListedKey> keys;
};
void describe(auto& v, KeyListing& l) {
  v.field(1, "run", l.run);
  v.field(2, "keys", l.keys);
}

Status make_keys(const KeysOptions& options) {
  TEMPER_TRY(KeyRing ring, KeyRing::open(options.run_dir, KeyRing::Make::Missing));
  if (options.names.size() > 1 && options.count > 1)
    return invalid_input("--count makes keys with generated names: give either --count or names");
  const std::size_t count =
      options.names.empty() ? static_cast<std::size_t>(options.count) : options.names.size();
  for (std::size_t i = 0; i < count; ++i) {
    TEMPER_TRY(const auto path,
               ring.make(options.names.empty() ? std::string() : options.names[i], options.place));
    fmt::print("{}\n", path.string());
  }
  return {};
}

Status list_keys(const KeysOptions& options) {
  TEMPER_TRY(const KeyRing ring, KeyRing::open(options.run_dir, KeyRing::Make::No));
  KeyListing listed{ring.head().run, {}};
  for (const auto& key : ring.keys())
    listed.keys.push_back({key.name, key.place, key.made, key.revoked, key.open});
  if (options.json) {
    fmt::print("{}\n", to_json(listed, JsonStyle::Pretty));
    return {};
  }
  fmt::print(
      "run {}\n{:<20} {:<14} {:<16} {:<16} begins\n", listed.run, "key", "for", "made", "revoked");
  for (const ListedKey& key : listed.keys) {
    fmt::print("{:<20} {:<14} {:<16} {:<16} {}\n",
               key.name,
               key.place,
               key.made,
               key.revoked.empty() ? "-" : key.revoked,
               key.open.substr(0, 10));
  }
  return {};
}

Status revoke_keys(const KeysOptions& options) {
  if (options.names.empty()) {
    return invalid_input(
        "temper keys revoke: expected the name of a key; `temper keys list "
        "RUN_DIR` shows the names");
  }
  TEMPER_TRY(KeyRing ring, KeyRing::open(options.run_dir, KeyRing::Make::No));
  for (const std::string& name : options.names) {
    TEMPER_TRY_STATUS(ring.revoke(name));
    fmt::print("revoked {}; a running orchestrator disconnects its worker within a second\n", name);
  }
  return {};
}

Status run_action(const KeysOptions& options) {
  if (options.action == "make")
    return make_keys(options);
  if (options.action == "list")
    return list_keys(options);
  if (options.action == "revoke")
    return revoke_keys(options);
  return invalid_input(
      fmt::format("temper keys: expected make, list or revoke, found `{}`", options.action));
}

}  // namespace

Handler keys_command(Flags& flags) {
  const auto options = std::make_shared<KeysOptions>();
  flags.argument("action", options->action, "make, list or revoke");
  flags.argument("run", options->run_dir, "Folder of the run; `make` creates it if needed");
  flags.arguments(
      "names", options->names, "Names of the keys (make: default generated)", Need::Optional);
  flags.text("--for", options->place, "make: what its workers may run: a slot, a role, or any");
  flags.number("--count", options->count, "make: number of keys with generated names");
  flags.json(options->json, "list: print one JSON object");
  return [options] {
    ::umask(0077);
    const Status status = run_action(*options);
    return status ? kDone : fail(status.error());
  };
}

}  // namespace temper::cli
