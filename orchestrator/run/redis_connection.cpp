#include "orchestrator/run/redis_connection.hpp"

#include "actors/server/url.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <cerrno>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr timeval kMostTime{1, 0};  ///< To connect, and then without an answer.
constexpr Duration kPause = std::chrono::seconds(2);

}  // namespace

std::string RedisAddress::text() const {
  return (tls ? "rediss://" : "") + actors::authority_of({host, port, {}});
}

void RedisConnection::Free::operator()(redisContext* context) const {
  redisFree(context);
}

void RedisConnection::Free::operator()(redisReply* reply) const {
  freeReplyObject(reply);
}

RedisConnection::RedisConnection(RedisAddress address, const Clock& clock)
    : address_(std::move(address)), clock_(clock) {
  if (address_.tls)
    tls_.emplace(address_.host, address_.ca_certificates);
}

RedisConnection::~RedisConnection() = default;

Result<std::vector<std::int64_t>> RedisConnection::ask(std::span<const RedisCommand> commands) {
  if (context_) {
    auto answers = exchange(commands);
    if (answers || answers.error().code != ErrorCode::Unavailable)
      return answers;
    not_before_ = {};  // a server that was restarted answers at once
  }
  if (clock_.now() < not_before_)
    return Error{ErrorCode::Unavailable, address_.text() + ": no answer"};
  TEMPER_TRY_STATUS(connect());
  return exchange(commands);
}

Status RedisConnection::connect() {
  errno = 0;
  context_.reset(redisConnectWithTimeout(address_.host.c_str(), address_.port, kMostTime));
  if (!context_ || context_->err != 0 || redisSetTimeout(context_.get(), kMostTime) != REDIS_OK)
    return lost(context_ ? context_->errstr : "no memory");
  redisEnableKeepAlive(context_.get());
  unsent_.clear();
  if (tls_) {
    errno = 0;
    if (Status opened = tls_->open(context_->fd); !opened) {
      if (opened.error().code == ErrorCode::Unavailable)
        return lost(opened.error().context);
      return refused(opened.error().code, opened.error().context);
    }
  }
  // PING tells whether a server without AUTH admits us, and whether it has loaded its data.
  append(address_.password.empty() ? RedisCommand{"PING"}
                                   : RedisCommand{"AUTH", address_.password});
  TEMPER_TRY(const Reply reply, next_reply());
  if (reply->type != REDIS_REPLY_ERROR)
    return {};
  const std::string_view words(reply->str, reply->len);
  return refused(words.starts_with("LOADING") ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
                 words);
}

Result<std::vector<std::int64_t>> RedisConnection::exchange(
    std::span<const RedisCommand> commands) {
  for (const RedisCommand& command : commands)
    append(command);
  std::vector<std::int64_t> answers;
  answers.reserve(commands.size());
  std::string refused;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    TEMPER_TRY(const Reply reply, next_reply());
    if (reply->type == REDIS_REPLY_ERROR && refused.empty())
      refused =
          fmt::format("{}: {}", commands[i].front(), std::string_view(reply->str, reply->len));
    answers.push_back(reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0);
  }
  if (!refused.empty())
    return invalid_input(fmt::format("{}: {}", address_.text(), refused));
  return answers;
}

void RedisConnection::append(const RedisCommand& command) {
  std::vector<const char*> parts;
  std::vector<std::size_t> sizes;
  parts.reserve(command.size());
  sizes.reserve(command.size());
  for (const std::string& part : command) {
    parts.push_back(part.data());
    sizes.push_back(part.size());
  }
  const int count = static_cast<int>(parts.size());
  if (!tls_) {
    redisAppendCommandArgv(context_.get(), count, parts.data(), sizes.data());
    return;
  }
  char* text = nullptr;
  const auto size = redisFormatCommandArgv(&text, count, parts.data(), sizes.data());
  if (size > 0)
    unsent_.append(text, static_cast<std::size_t>(size));
  redisFreeCommand(text);
}

Result<RedisConnection::Reply> RedisConnection::next_reply() {
  if (tls_)
    return next_reply_over_tls();
  void* reply = nullptr;
  errno = 0;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK)
    return lost(context_->errstr);
  return Reply(static_cast<redisReply*>(reply));
}

Result<RedisConnection::Reply> RedisConnection::next_reply_over_tls() {
  errno = 0;
  if (!unsent_.empty()) {
    if (const Status written = tls_->write(unsent_); !written)
      return lost(written.error().context);
    unsent_.clear();
  }
  void* reply = nullptr;
  while (true) {
    if (redisReaderGetReply(context_->reader, &reply) != REDIS_OK)
      return lost(context_->reader->errstr);
    if (reply != nullptr)
      return Reply(static_cast<redisReply*>(reply));
    const auto bytes = tls_->read();
    if (!bytes)
      return lost(bytes.error().context);
    redisReaderFeed(context_->reader, bytes->data(), bytes->size());
  }
}

/// For a server that answers, but does not admit us: the next attempt waits for kPause.
Error RedisConnection::refused(ErrorCode code, std::string_view why) {
  not_before_ = clock_.now() + kPause;
  context_.reset();
  return {code, fmt::format("{}: {}", address_.text(), why)};
}

Error RedisConnection::lost(std::string_view why) {
  // The time limit of the socket. Any other failure costs no time, and a server that was restarted
  // without its data must be noticed before a batch is sent.
  const bool silent = errno == EAGAIN || errno == ETIMEDOUT;
  Error error{ErrorCode::Unavailable, fmt::format("{}: {}", address_.text(), why)};
  context_.reset();
  not_before_ = silent ? clock_.now() + kPause : Time{};
  return error;
}

}  // namespace temper::orchestrator
