#include "orchestrator/pipeline/launch_rules.hpp"

#include "actors/server/url.hpp"
#include "orchestrator/pipeline/unused_keys.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {

void check_launch(const PipelineConfig& c, Rules& rules) {
  check_unused_keys(c.payloads, rules);
  if (c.payloads.store == TensorStoreKind::Redis) {
    rules.require(c.hardware == HardwareKind::Local,
                  {"payloads.store", "hardware"},
                  "`redis` requires `hardware: local`; `simulation.tensors` gives responses of "
                  "simulated runs tensors");
    const auto address = actors::parse_redis_url(c.payloads.redis, kRedisPassword);
    rules.require(address.has_value(),
                  {"payloads.redis", "payloads.store"},
                  address ? "" : address.error().context);
    rules.require(c.payloads.redis_ca.empty() || !address || address->tls,
                  {"payloads.redis_ca", "payloads.redis"},
                  "a server without TLS has no certificate; expected an address that begins with "
                  "rediss://");
  }
  const TransportSection& t = c.transport;
  for (const auto& [role, launch] : {std::pair("rollout", c.rollout.launch),
                                     std::pair("trainer", c.trainer.launch),
                                     std::pair("reference", c.reference.launch),
                                     std::pair("reward", c.reward.launch)}) {
    if (launch == LaunchKind::Local)
      continue;
    const std::string key = fmt::format("{}.launch", role);
    rules.require(
        t.kind == TransportKind::Tcp && t.security == TransportSecurity::Curve,
        {key, "transport.kind", "transport.security"},
        "`attach` requires `transport: {kind: tcp, security: curve}`; for workers on "
        "other machines, also set `transport.bind` to an address they can reach, such as 0.0.0.0");
    rules.require(
        !traits_of(c.placement.mode).shares,
        {key, "placement.mode"},
        fmt::format("`attach` requires `mode: separate`, found `{}`, because workers of several "
                    "machines cannot time-share cards",
                    name_of(c.placement.mode)));
    rules.require(c.hardware == HardwareKind::Local,
                  {key, "hardware"},
                  "`attach` requires `hardware: local`");
  }
}

}  // namespace temper::orchestrator
