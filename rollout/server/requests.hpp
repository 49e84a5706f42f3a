// The responses of a server engine, and their requests in flight.
#pragma once

#include "actors/server/http_client.hpp"
#include "rollout/engine.hpp"

#include <deque>
#include <optional>
#include <unordered_map>

namespace temper::rollout {

/// An unfinished response.
struct ServerResponse {
  GenerationRequest request;
  Generation out;                   ///< Confirmed tokens from this engine.
  std::size_t limit = 0;            ///< Largest number of response tokens, including the prefix.
  int failures = 0;                 ///< Consecutive failures.
  std::optional<std::string> call;  ///< Id of the request in flight.

  std::size_t made() const { return request.prefix.size() + out.tokens.size(); }
  std::vector<std::int32_t> tokens() const;
};

/// Every response is either queued or has a request in flight.
class ServerResponses {
 public:
  using Ticket = actors::HttpClient::Ticket;

  void add(ServerResponse response);
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  std::size_t under_way() const { return tickets_.size(); }

  /// The next response to send; null: none.
  ServerResponse* next();
  /// Records the request of the response that next() returned.
  void sent(ServerResponse& response, std::string call, Ticket ticket);
  /// The response that this answer is for, now without a request; null: it was removed.
  ServerResponse* answered(Ticket ticket);
  /// Queues the response again, before others.
  void requeue(ServerResponse& response);
  /// Queues all responses whose requests were in flight.
  void requeue_all();

  /// Null if there is no such response. Valid until the response is removed.
  ServerResponse* find(ResponseId id);
  /// Removes a response, queued or in flight.
  std::optional<ServerResponse> take(ResponseId id);
  std::vector<ResponseId> ids() const;
  std::vector<ResponseId> ids_under_way() const;

 private:
  std::unordered_map<ResponseId, ServerResponse> all_;
  std::deque<ResponseId> queue_;  ///< May have ids of removed responses.
  std::unordered_map<Ticket, ResponseId> tickets_;
};

}  // namespace temper::rollout
