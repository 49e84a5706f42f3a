#include "orchestrator/run/redis_tensors.hpp"

#include "actors/server/url.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/secret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Of an array without elements there is one chunk, which is empty.
std::int64_t chunks_of(const actors::Tensor& t) {
  return static_cast<std::int64_t>(
      std::max<std::uint64_t>(1, (t.bytes + kTensorChunk - 1) / kTensorChunk));
}

constexpr int kTrialLease = 60;  ///< Seconds; for a key that a failed start leaves.

Result<std::string> read_ca_certificates(const std::string& file) {
  if (file.empty())
    return std::string();
  auto text = read_file(file);
  if (!text)
    return std::move(text).error().within("payloads.redis_ca");
  auto certificates = certificates_in(*text);
  if (!certificates)
    return std::move(certificates).error().within("payloads.redis_ca: " + file);
  return certificates;
}

}  // namespace

RedisTensors::RedisTensors(RedisTensorsOptions options, const Log& log)
    : options_(std::move(options)), log_(log) {
  for (const RedisAddress& address : options_.servers)
    servers_.push_back({std::make_unique<RedisConnection>(address, clock_)});
}

Result<std::unique_ptr<RedisTensors>> RedisTensors::create(RedisTensorsOptions options,
                                                           const Log& log) {
  std::unique_ptr<RedisTensors> store(new RedisTensors(std::move(options), log));
  store->prefix_ = fmt::format("temper:{}:{}:", store->options_.run, make_secret().substr(0, 16));
  const std::string key = store->prefix_ + ".";  // Commands of engines and of the orchestrator.
  const std::vector<RedisCommand> used{
      {"HSET", key, "0", ""}, {"EXPIRE", key, "1"}, {"HLEN", key}, {"UNLINK", key}};
  for (const Server& server : store->servers_) {
    if (const auto answers = server.connection->ask(used); !answers)
      return answers.error();
  }
  return store;
}

/// Each server gets a field of its own under one key, so that a server with two names has the field
/// of its other name already.
Status RedisTensors::check_distinct() {
  const std::string key = prefix_ + "..";
  const auto ask_one = [&](std::size_t server, const std::vector<RedisCommand>& commands) {
    return servers_[server].connection->ask(commands);
  };
  std::optional<Error> same;
  for (std::size_t s = 0; s < servers_.size() && !same; ++s) {
    TEMPER_TRY(const auto answers,
               ask_one(s,
                       {{"HSET", key, std::to_string(s), ""},
                        {"EXPIRE", key, std::to_string(kTrialLease)},
                        {"HLEN", key}}));
    for (std::size_t other = 0; answers.back() > 1 && other < s && !same; ++other) {
      TEMPER_TRY(const auto added, ask_one(s, {{"HSET", key, std::to_string(other), ""}}));
      if (added.front() == 0) {
        same = invalid_input(
            fmt::format("{} and {} are the same server; expected each server once, because they "
                        "divide the tensors among them; remove one of the two",
                        options_.servers[other].text(),
                        options_.servers[s].text()));
      }
    }
  }
  for (std::size_t s = 0; s < servers_.size(); ++s)
    TEMPER_TRY_STATUS(ask_one(s, {{"UNLINK", key}}));
  return same ? Status(*std::move(same)) : Status();
}

RedisTensors::~RedisTensors() {
  try {
    remove_keys({taken_.begin(), taken_.end()});
  } catch (...) {
    taken_.clear();  // The server removes them when their lease ends.
  }
}

actors::TensorPlace RedisTensors::place() const {
  actors::TensorPlace place;
  for (const RedisAddress& server : options_.servers)
    place.servers.push_back({server.host, server.port});
  place.password = options_.servers.front().password;
  place.prefix = prefix_;
  place.lease = options_.lease;
  place.wait = options_.wait;
  place.tls = options_.servers.front().tls;
  place.ca_certificates = options_.servers.front().ca_certificates;
  return place;
}

bool RedisTensors::accepts(const std::string& name) const {
  return is_name_of_engine(name) && !taken_.contains(prefix_ + name);
}

/// As an engine names it, or as it was taken.
std::string RedisTensors::key_of(const actors::Tensor& t) const {
  return is_name_of_engine(t.file) ? prefix_ + t.file : t.file;
}

/// As in python/src/temper/stores.py.
std::size_t RedisTensors::server_of(std::string_view key) const {
  return hash64(key) % servers_.size();
}

std::vector<std::optional<std::int64_t>> RedisTensors::ask(std::vector<RedisCommand> commands) {
  std::vector<std::vector<RedisCommand>> of_servers(servers_.size());
  std::vector<std::vector<std::size_t>> places(servers_.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::size_t server = server_of(commands[i][1]);
    of_servers[server].push_back(std::move(commands[i]));
    places[server].push_back(i);
  }
  std::vector<std::optional<std::int64_t>> all(commands.size());
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    if (places[s].empty())
      continue;
    const auto answers = servers_[s].connection->ask(of_servers[s]);
    if (answers.has_value() == servers_[s].away)
      say(s, answers ? std::nullopt : std::optional(answers.error()));
    for (std::size_t i = 0; answers && i < places[s].size(); ++i)
      all[places[s][i]] = (*answers)[i];
  }
  return all;
}

/// nullopt: the server answers again.
void RedisTensors::say(std::size_t server, const std::optional<Error>& why) {
  servers_[server].away = why.has_value();
  if (!why) {
    log_.info("the Redis server of tensors answers again",
              {{"address", options_.servers[server].text()}});
    return;
  }
  log_.warning(why->code == ErrorCode::Unavailable
                   ? "the Redis server of tensors does not answer; engines and the trainer wait "
                     "for it"
                   : "the Redis server of tensors refuses a command",
               {{"why", why->context}, {"wait", to_text(options_.wait)}});
}

std::vector<bool> RedisTensors::find(std::span<const actors::Tensor> tensors) {
  std::vector<RedisCommand> commands;
  commands.reserve(tensors.size());
  for (const actors::Tensor& t : tensors)
    commands.push_back({"HLEN", key_of(t)});
  const auto chunks = ask(std::move(commands));
  std::vector<bool> found(tensors.size(), true);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    found[i] = !chunks[i] || *chunks[i] == chunks_of(tensors[i]);
  return found;
}

void RedisTensors::take(std::vector<actors::Tensor>& tensors) {
  for (actors::Tensor& t : tensors) {
    t.file = key_of(t);
    taken_.insert(t.file);
  }
}

void RedisTensors::refuse(std::span<const actors::Tensor> tensors) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const actors::Tensor& t : tensors) {
    if (accepts(t.file))
      keys.push_back(key_of(t));
  }
  remove_keys(keys);
}

void RedisTensors::remove(std::span<const actors::Tensor> tensors) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const actors::Tensor& t : tensors) {
    if (taken_.erase(t.file) > 0)
      keys.push_back(t.file);
  }
  remove_keys(keys);
}

void RedisTensors::keep_only(std::span<const actors::Tensor> tensors) {
  std::unordered_set<std::string> kept;
  for (const actors::Tensor& t : tensors)
    kept.insert(t.file);
  std::vector<std::string> others;
  for (const std::string& key : taken_) {
    if (!kept.contains(key))
      others.push_back(key);
  }
  for (const std::string& key : others)
    taken_.erase(key);
  remove_keys(others);
}

bool RedisTensors::has(std::span<const actors::Tensor> tensors) {
  const auto is_own = [&](const actors::Tensor& t) { return taken_.contains(t.file); };
  return std::ranges::all_of(tensors, is_own) &&
         std::ranges::all_of(find(tensors), std::identity());
}

/// A key that cannot be removed now expires.
void RedisTensors::remove_keys(const std::vector<std::string>& keys) {
  std::vector<RedisCommand> commands;
  commands.reserve(keys.size());
  for (const std::string& key : keys)
    commands.push_back({"UNLINK", key});
  ask(std::move(commands));
}

void RedisTensors::refresh(Time now) {
  if (now < refresh_at_)
    return;
  refresh_at_ = now + options_.lease / 4;
  const std::string seconds =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options_.lease).count());
  std::vector<RedisCommand> commands;
  commands.reserve(taken_.size());
  for (const std::string& key : taken_)
    commands.push_back({"EXPIRE", key, seconds});
  ask(std::move(commands));
}

Result<std::unique_ptr<RedisTensors>> open_redis_tensors(const PipelineConfig& config,
                                                         const Log& log) {
  const PayloadsSection& payloads = config.payloads;
  TEMPER_TRY(actors::RedisUrl url, actors::parse_redis_url(payloads.redis, kRedisPassword));
  TEMPER_TRY(const std::string ca_certificates, read_ca_certificates(payloads.redis_ca));
  const char* const password = std::getenv(kRedisPassword);
  std::vector<RedisAddress> servers;
  for (auto& [host, port] : url.servers) {
    servers.push_back(
        {std::move(host), port, password == nullptr ? "" : password, url.tls, ca_certificates});
  }
  auto store = RedisTensors::create({std::move(servers), config.name, payloads.wait}, log);
  if (!store) {
    return std::move(store).error().within(
        url.tls
            ? "payloads.redis: expected a Redis server that admits this run; start it, give "
              "it memory, correct the address, set TEMPER_REDIS_PASSWORD, or name the CA "
              "certificate that signed the server's in payloads.redis_ca"
            : "payloads.redis: expected a Redis server that admits this run; start it, give "
              "it memory, correct the address (rediss:// for TLS), or set TEMPER_REDIS_PASSWORD");
  }
  if (auto distinct = (*store)->check_distinct(); !distinct)
    return std::move(distinct).error().within("payloads.redis");
  return store;
}

}  // namespace temper::orchestrator
