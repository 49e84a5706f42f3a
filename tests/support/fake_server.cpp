#include "tests/support/fake_server.hpp"

#include "core/random.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace temper::test {
namespace {

using actors::HttpRequest;

constexpr const char* kScript = TEMPER_SOURCE_DIR "/tests/support/fake_server.py";
constexpr int kPatienceMs = 30'000;

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
};

std::vector<NamedShape> tensors() {
  const actors::ModelConfig m = table_model().shape;
  const std::int64_t d = m.hidden, head = d / m.heads;
  return {{"embedding.weight", {kTableTokens, d}},
          {"layers.0.attention_norm.weight", {d}},
          {"layers.0.attention.qkv.weight", {(m.heads + 2 * m.kv_heads) * head, d}},
          {"layers.0.attention.out.weight", {d, d}},
          {"layers.0.ffn_norm.weight", {d}},
          {"layers.0.ffn.gate_up.weight", {2 * m.ffn, d}},
          {"layers.0.ffn.down.weight", {d, m.ffn}},
          {"norm.weight", {d}},
          {"head.weight", {kTableTokens, d}}};
}

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
  model.end_token = 1;
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
  nlohmann::json header = {{"__metadata__", {{"updates", "0"}}}};
  if (with_canary)
    header["__metadata__"][actors::kCanaryKey] = actors::canary_text(canary());
  std::string data;
  for (const auto& [name, shape] : tensors()) {
    std::size_t size = sizeof(float);
    for (const std::int64_t extent : shape)
      size *= static_cast<std::size_t>(extent);
    header[name] = {
        {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + size}}};
    if (name == "embedding.weight")
      data.append(reinterpret_cast<const char*>(embedding_.data()), size);
    else
      data.append(size, '\0');
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data;
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

std::string fake_server_command(actors::EngineKind kind, const std::string& more) {
  return fmt::format("python3 {} --kind {} --model {{model}} --host {{host}} --port {{port}} {}",
                     kScript,
                     name_of(kind),
                     more);
}

}  // namespace temper::test
