#include "rollout/server/requests.hpp"

#include <algorithm>

namespace temper::rollout {

std::vector<std::int32_t> ServerResponse::tokens() const {
  std::vector<std::int32_t> all;
  all.reserve(request.prompt.size() + made());
  for (const auto* part : {&request.prompt, &request.prefix, &out.tokens})
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

void ServerResponses::add(ServerResponse response) {
  const ResponseId id = response.request.id;
  all_.insert_or_assign(id, std::move(response));
  queue_.push_back(id);
}

ServerResponse* ServerResponses::next() {
  while (!queue_.empty()) {
    ServerResponse* const response = find(queue_.front());
    queue_.pop_front();
    if (response != nullptr && !response->call)
      return response;
  }
  return nullptr;
}

void ServerResponses::sent(ServerResponse& response, std::string call, Ticket ticket) {
  response.call = std::move(call);
  tickets_[ticket] = response.request.id;
}

ServerResponse* ServerResponses::answered(Ticket ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end())
    return nullptr;
  ServerResponse* const response = find(found->second);
  tickets_.erase(found);
  if (response != nullptr)
    response->call.reset();
  return response;
}

void ServerResponses::requeue(ServerResponse& response) {
  response.call.reset();
  queue_.push_front(response.request.id);
}

void ServerResponses::requeue_all() {
  tickets_.clear();
  for (auto& [id, response] : all_) {
    if (response.call)
      requeue(response);
  }
}

ServerResponse* ServerResponses::find(ResponseId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

std::optional<ServerResponse> ServerResponses::take(ResponseId id) {
  const auto found = all_.find(id);
  if (found == all_.end())
    return std::nullopt;
  std::optional<ServerResponse> response(std::move(found->second));
  all_.erase(found);
  if (response->call)
    std::erase_if(tickets_, [&](const auto& ticket) { return ticket.second == id; });
  return response;
}

std::vector<ResponseId> ServerResponses::ids() const {
  std::vector<ResponseId> ids;
  for (const auto& [id, response] : all_)
    ids.push_back(id);
  std::ranges::sort(ids);
  return ids;
}

std::vector<ResponseId> ServerResponses::ids_under_way() const {
  std::vector<ResponseId> ids;
  for (const auto& [ticket, id] : tickets_)
    ids.push_back(id);
  std::ranges::sort(ids);
  return ids;
}

}  // namespace temper::rollout
