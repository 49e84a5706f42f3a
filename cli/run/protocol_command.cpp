#include "cli/run/protocol_command.hpp"

#include "actors/protocol/directions.hpp"
#include "core/schema.hpp"
#include "rollout/settings.hpp"
#include "trainer/settings.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

namespace temper {
namespace {

struct MessageSchema {
  std::string name;
  std::string type;
  std::uint32_t tag = 0;
  std::uint32_t version = 0;
  std::uint32_t oldest = 0;
  actors::Direction direction{};
};
void describe(auto& v, MessageSchema& m) {
  v.field(1, "name", m.name);
  v.field(2, "type", m.type);
  v.field(3, "tag", m.tag);
  v.field(4, "version", m.version);
  v.field(5, "oldest", m.oldest);
  v.field(6, "direction", m.direction);
}

struct ProtocolSchema {
  std::uint32_t protocol = actors::kProtocolVersion;
  std::string envelope;
  std::vector<MessageSchema> messages;
  std::map<std::string, std::string> settings;  ///< Type of RoleConfig::settings, by role.
  std::uint32_t checkpoint_format = trainer::kCheckpointFormat;
  Schema types;
};
void describe(auto& v, ProtocolSchema& p) {
  v.field(1, "protocol", p.protocol);
  v.field(2, "envelope", p.envelope);
  v.field(3, "messages", p.messages);
  v.field(4, "settings", p.settings);
  v.field(5, "structs", p.types.structs);
  v.field(6, "enumerations", p.types.enumerations);
  v.field(7, "checkpoint_format", p.checkpoint_format);
}

ProtocolSchema protocol_schema() {
  ProtocolSchema out;
  out.envelope = out.types.add<actors::Envelope>();
  actors::AllMessages::for_each([&]<class M>(std::type_identity<M>) {
    out.messages.push_back({std::string(M::kName),
                            out.types.add<M>(),
                            M::kTag,
                            M::kVersion,
                            M::kOldestVersion,
                            actors::direction<M>()});
  });
  out.settings = {{"rollout", out.types.add<rollout::RolloutSettings>()},
                  {"trainer", out.types.add<trainer::TrainerSettings>()},
                  {"reference", out.types.add<trainer::TrainerSettings>()}};
  return out;
}

}  // namespace

namespace cli {

std::string protocol_json() {
  return to_json(protocol_schema(), JsonStyle::Pretty) + "\n";
}

Handler protocol_command(Flags& flags) {
  const auto json = std::make_shared<bool>(false);
  flags.json(*json);
  return [json] {
    if (*json) {
      std::cout << protocol_json();
      return 0;
    }
    for (const MessageSchema& m : protocol_schema().messages)
      std::cout << fmt::format("{:<20} {:>3}  {}\n", m.name, m.tag, name_of(m.direction));
    return 0;
  };
}

}  // namespace cli
}  // namespace temper
