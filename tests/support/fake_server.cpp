#include "tests/support/fake_server.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "core/random.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace temper::test {
namespace {

using actors::HttpRequest;

constexpr const char* kScript = TEMPER_SOURCE_DIR "/tests/support/fake_server.py";
constexpr int kPatienceMs = 30'000;

std::string line_from(int fd) {
  std::string line;
  while (line.find('\n') == std::string::npos) {
    pollfd wait{fd, POLLIN, 0};
    char piece[256];
    const ssize_t n = ::poll(&wait, 1, kPatienceMs) == 1 ? ::read(fd, piece, sizeof piece) : 0;
    if (n <= 0)
      return line;
    line.append(piece, static_cast<std::size_t>(n));
  }
  return line;
}

}  // namespace

actors::FolderModel table_model() {
  actors::FolderModel model;
  model.shape.hidden = 16;
  model.shape.layers = 1;
  model.shape.heads = 2;
  model.shape.kv_heads = 1;
  model.shape.ffn = 16;
  model.shape.context = Tokens(64);
  model.vocabulary = kTableTokens;
  const auto layout = actors::Layout::make(model.shape, model.vocabulary).value();
  actors::ConfigJson config{.model = layout.model(), .end_tokens = {1}};
  config.model.vocabulary = layout.vocabulary();
  config.model.head_dim = layout.head_dim();
  model.config_json = actors::write_config_json(config);
  return model;
}

Table::Table(std::uint64_t seed) {
  Random random(seed, "table");
  embedding_.resize(static_cast<std::size_t>(kTableTokens * table_model().shape.hidden));
  for (float& x : embedding_)
    x = static_cast<float>(random.normal());
}

float Table::logprob(std::int32_t token, std::int32_t next) const {
  const float* const row = embedding_.data() + token * table_model().shape.hidden;
  double sum = 0;
  for (std::int32_t i = 0; i < kTableTokens; ++i)
    sum += std::exp(double{row[i]});
  return static_cast<float>(double{row[next]} - std::log(sum));
}

actors::Canary Table::canary() const {
  actors::Canary canary{actors::canary_tokens(kTableTokens, table_model().shape.context), {}};
  for (std::size_t i = 1; i < canary.tokens.size(); ++i)
    canary.logprobs.push_back(logprob(canary.tokens[i - 1], canary.tokens[i]));
  return canary;
}

std::string Table::image(bool with_canary) const {
  actors::SafetensorsMetadata metadata{{"updates", "0"}};
  if (with_canary)
    metadata.emplace(actors::kCanaryKey, actors::canary_text(canary()));
  const auto layout = actors::Layout::make(table_model().shape, kTableTokens).value();
  std::vector<float> flat(static_cast<std::size_t>(layout.size()));
  std::copy(embedding_.begin(),
            embedding_.end(),
            flat.begin() + layout.tensors()[layout.embedding()].offset);
  return actors::write_safetensors(actors::tensors_to_write(layout, flat), metadata);
}

FakeServer::FakeServer(actors::EngineKind kind, const Arguments& more) : kind_(kind), more_(more) {
  start(0);
}

void FakeServer::start(int port) {
  std::vector<std::string> command{
      "python3", kScript, "--kind", std::string(name_of(kind_)), "--port", std::to_string(port)};
  command.insert(command.end(), more_.begin(), more_.end());
  process_.reset();
  process_.emplace(actors::GuardedProcess::start(command).value());
  const std::string line = line_from(process_->output());
  int pid = 0;
  ASSERT_EQ(std::sscanf(line.c_str(), "listening on %d as %d", &port_, &pid), 2) << line;
  pid_ = pid;
  client_ = std::make_unique<actors::HttpClient>(actors::parse_url(address()).value(), 2);
}

std::string FakeServer::address() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

void FakeServer::tell(const std::string& json) {
  const auto answer = client_->call({"POST", "/fake", json, std::chrono::seconds(10)});
  ASSERT_TRUE(answer.good()) << answer.failure << answer.body;
}

nlohmann::json FakeServer::state() {
  const auto answer = client_->call({"GET", "/fake", {}, std::chrono::seconds(10)});
  return answer.good() ? parse_json(answer.body) : nlohmann::json::object();
}

void FakeServer::await_begun(int count) {
  const auto holds = [count](const nlohmann::json& s) {
    return s.value("begun", 0) >= count && s.value("sampling", 1) == 0;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!holds(state()))
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << state().dump();
}

void FakeServer::kill() {
  process_.reset();
}

void FakeServer::start_again() {
  start(port_);
}

std::vector<actors::EngineKind> servers_with_routes() {
  std::vector<actors::EngineKind> kinds;
  for (const actors::EngineTraits& kind : actors::kEngineKinds) {
    if (kind.loading == actors::ServerLoading::Routes)
      kinds.push_back(kind.value);
  }
  return kinds;
}

std::string fake_server_command(actors::EngineKind kind, const std::string& more) {
  // llama.cpp's is given a file.
  const bool file = traits_of(kind).reads_gguf;
  return fmt::format("python3 {} --kind {} --model {{model}}{} --host {{host}} --port {{port}} {}",
                     kScript,
                     name_of(kind),
                     file ? "/model.gguf" : "",
                     more);
}

}  // namespace temper::test
