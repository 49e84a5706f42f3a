#include "orchestrator/run/redis_connection.hpp"

#include "actors/server/url.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <utility>

namespace temper::orchestrator {
namespace {

constexpr timeval kMostTime{1, 0};  ///< To connect, and then without an answer.
constexpr Duration kPause = std::chrono::seconds(2);
constexpr Duration kAtOnce = std::chrono::milliseconds(100);  ///< A failure that cost no time.

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

void append(redisContext* context, const RedisCommand& command) {
  std::vector<const char*> parts;
  std::vector<std::size_t> sizes;
  parts.reserve(command.size());
  sizes.reserve(command.size());
  for (const std::string& part : command) {
    parts.push_back(part.data());
    sizes.push_back(part.size());
  }
  redisAppendCommandArgv(context, static_cast<int>(parts.size()), parts.data(), sizes.data());
}

/// Null: the connection is lost.
Reply next_reply(redisContext* context) {
  void* reply = nullptr;
  if (redisGetReply(context, &reply) != REDIS_OK)
    return nullptr;
  return Reply(static_cast<redisReply*>(reply));
}

}  // namespace

std::string RedisAddress::text() const {
  return actors::authority_of({host, port, {}});
}

void RedisConnection::Close::operator()(redisContext* context) const {
  redisFree(context);
}

RedisConnection::RedisConnection(RedisAddress address) : address_(std::move(address)) {}

RedisConnection::~RedisConnection() = default;

Result<std::vector<std::int64_t>> RedisConnection::ask(std::span<const RedisCommand> commands) {
  asked_at_ = clock_.now();
  if (context_) {
    auto answers = exchange(commands);
    if (answers || answers.error().code != ErrorCode::Unavailable)
      return answers;
    not_before_ = {};  // a server that was restarted answers at once
  }
  if (asked_at_ < not_before_)
    return Error{ErrorCode::Unavailable, address_.text() + ": no answer"};
  TEMPER_TRY_STATUS(connect());
  return exchange(commands);
}

Status RedisConnection::connect() {
  context_.reset(redisConnectWithTimeout(address_.host.c_str(), address_.port, kMostTime));
  if (!context_ || context_->err != 0 || redisSetTimeout(context_.get(), kMostTime) != REDIS_OK)
    return lost();
  redisEnableKeepAlive(context_.get());
  // PING tells whether a server without AUTH admits us, and whether it has loaded its data.
  append(
      context_.get(),
      address_.password.empty() ? RedisCommand{"PING"} : RedisCommand{"AUTH", address_.password});
  const Reply reply = next_reply(context_.get());
  if (!reply)
    return lost();
  if (reply->type != REDIS_REPLY_ERROR)
    return {};
  const std::string_view words(reply->str, reply->len);
  not_before_ = clock_.now() + kPause;
  Error refused{words.starts_with("LOADING") ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
                fmt::format("{}: {}", address_.text(), words)};
  context_.reset();
  return refused;
}

Result<std::vector<std::int64_t>> RedisConnection::exchange(
    std::span<const RedisCommand> commands) {
  for (const RedisCommand& command : commands)
    append(context_.get(), command);
  std::vector<std::int64_t> answers;
  answers.reserve(commands.size());
  std::string refused;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const Reply reply = next_reply(context_.get());
    if (!reply)
      return lost();
    if (reply->type == REDIS_REPLY_ERROR && refused.empty())
      refused =
          fmt::format("{}: {}", commands[i].front(), std::string_view(reply->str, reply->len));
    answers.push_back(reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0);
  }
  if (!refused.empty())
    return invalid_input(fmt::format("{}: {}", address_.text(), refused));
  return answers;
}

Error RedisConnection::lost() {
  Error error{ErrorCode::Unavailable,
              fmt::format("{}: {}", address_.text(), context_ ? context_->errstr : "no memory")};
  context_.reset();
  // A server that was restarted without its data must be noticed before a batch is sent.
  not_before_ = clock_.now() - asked_at_ > kAtOnce ? clock_.now() + kPause : Time{};
  return error;
}

}  // namespace temper::orchestrator
