// The responses that a server engine has, and which of them have a request under way.
#pragma once

#include "actors/server/http_client.hpp"
#include "rollout/engine.hpp"

#include <deque>
#include <optional>
#include <unordered_map>

namespace temper::rollout {

/// A response that is not done.
struct ServerResponse {
  GenerationRequest request;
  Generation out;                   ///< Certain tokens of this engine.
  std::size_t limit = 0;            ///< Response tokens in all, the prefix's included.
  int failures = 0;                 ///< In a row.
  std::optional<std::string> call;  ///< Id of the request under way.

  std::size_t made() const { return request.prefix.size() + out.tokens.size(); }
  std::vector<std::int32_t> tokens() const;
};

/// Every response is either queued or under way.
class ServerResponses {
 public:
  using Ticket = actors::HttpClient::Ticket;

  void add(ServerResponse response);
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  std::size_t under_way() const { return tickets_.size(); }

  /// The next to be sent; null: none.
  ServerResponse* next();
  /// The one that next() gave has this request.
  void sent(ServerResponse& response, std::string call, Ticket ticket);
  /// The response that this answer is for; null: it is gone. It is no longer under way.
  ServerResponse* answered(Ticket ticket);
  /// To be sent again, before others.
  void requeue(ServerResponse& response);
  /// Nothing is under way any more; all are queued.
  void requeue_all();

  ServerResponse* find(ResponseId id);
  /// Takes it out, whatever it was.
  std::optional<ServerResponse> take(ResponseId id);
  std::vector<ResponseId> ids() const;
  std::vector<ResponseId> ids_under_way() const;

 private:
  std::unordered_map<ResponseId, ServerResponse> all_;
  std::deque<ResponseId> queue_;  ///< May name some that are gone.
  std::unordered_map<Ticket, ResponseId> tickets_;
};

}  // namespace temper::rollout
