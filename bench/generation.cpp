// The rollout engine of a worker, for bench/peers/generation.py. Reads
//   {"folder": DIR, "compute_dtype": "float32" | "bfloat16", "threads": n, "new_tokens": n,
//    "batches": [[[token, ..], ..], ..]}
// from standard input, generates `new_tokens` for each prompt of a batch at once, always the most
// likely one and past end tokens, and prints, for each batch,
//   {"seconds": .., "processor_s": .., "decode": {"seconds": .., "processor_s": .., "bytes": n},
//    "tokens": n}
// beside "read", which is as "decode": as many threads read a large array. "bytes" of decode steps
// are those of the weights.
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "actors/policy/transformer.hpp"
#include "core/check.hpp"
#include "core/clock.hpp"
#include "rollout/torch/engine.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iostream>
#include <span>
#include <thread>
#include <vector>

namespace temper {
namespace {

using Prompts = std::vector<std::vector<std::int32_t>>;

struct Cost {
  double seconds = 0;
  double processor_s = 0;

  Cost& operator+=(const Cost& other) {
    seconds += other.seconds;
    processor_s += other.processor_s;
    return *this;
  }
};

/// Measures from its construction on.
class Meter {
 public:
  Cost cost() const { return {seconds(clock_.now() - begin_), processor_seconds() - processor_}; }

 private:
  static double processor_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
  }

  RealClock clock_;
  Time begin_ = clock_.now();
  double processor_ = processor_seconds();
};

nlohmann::json json_of(const Cost& cost, std::size_t bytes) {
  return {{"seconds", cost.seconds}, {"processor_s", cost.processor_s}, {"bytes", bytes}};
}

/// The sum of an array, in eight sums so that the additions do not limit it.
std::uint64_t sum_of(std::span<const std::uint64_t> values) {
  std::array<std::uint64_t, 8> sums{};
  for (std::size_t i = 0; i + sums.size() <= values.size(); i += sums.size()) {
    for (std::size_t j = 0; j < sums.size(); ++j)
      sums[j] += values[i + j];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums)
    all += sum;
  return all;
}

/// The fastest of five passes, each thread over a quarter of a gigabyte of its own.
nlohmann::json measure_read(int threads) {
  constexpr std::size_t kWords = std::size_t{1} << 25;
  const std::vector<std::vector<std::uint64_t>> arrays(static_cast<std::size_t>(threads),
                                                       std::vector<std::uint64_t>(kWords, 1));
  Cost best;
  std::atomic<std::uint64_t> total = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const Meter meter;
    {
      std::vector<std::jthread> readers;
      for (const auto& array : arrays)
        readers.emplace_back([&total, &array] { total += sum_of(array); });
    }
    const Cost cost = meter.cost();
    if (pass == 0 || cost.processor_s < best.processor_s)
      best = cost;
  }
  TEMPER_CHECK(total == 5 * arrays.size() * kWords, "every word is read");
  return json_of(best, arrays.size() * kWords * sizeof(std::uint64_t));
}

Result<nlohmann::json> generate(rollout::Engine& engine,
                                const Prompts& prompts,
                                std::size_t weight_bytes) {
  static std::uint64_t next = 0;
  const Meter whole;
  for (const auto& prompt : prompts) {
    rollout::GenerationRequest request;
    request.id = ResponseId(next++);
    request.prompt = prompt;
    request.greedy = true;
    engine.add(std::move(request));
  }
  Cost decode;
  std::size_t bytes = 0, tokens = 0;
  while (engine.load() > 0) {
    const Meter meter;
    TEMPER_TRY(const rollout::StepResult step, engine.step());
    if (step.kind == rollout::StepKind::Decode) {
      decode += meter.cost();
      bytes += weight_bytes;
    }
    for (const rollout::Generation& done : step.finished)
      tokens += done.tokens.size();
  }
  const Cost cost = whole.cost();
  return nlohmann::json{{"seconds", cost.seconds},
                        {"processor_s", cost.processor_s},
                        {"decode", json_of(decode, bytes)},
                        {"tokens", tokens}};
}

Result<nlohmann::json> run(const nlohmann::json& asked) {
  const int threads = asked.at("threads").get<int>();
  const auto batches = asked.at("batches").get<std::vector<Prompts>>();
  nlohmann::json read = measure_read(threads);
  actors::set_compute_threads(threads);
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(asked.at("folder").get<std::string>()));
  actors::ModelConfig model = folder.model();
  const bool half = asked.at("compute_dtype").get<std::string>() == "bfloat16";
  model.compute_dtype = half ? actors::ComputeType::Bfloat16 : actors::ComputeType::Float32;
  TEMPER_TRY(const auto layout, actors::Layout::make(model, 0));
  TEMPER_TRY(const std::string image, actors::read_image(folder, layout));
  std::size_t slots = 0, longest = 0;
  for (const Prompts& batch : batches) {
    slots = std::max(slots, batch.size());
    for (const auto& prompt : batch)
      longest = std::max(longest, prompt.size());
  }
  rollout::TorchEngineOptions options;
  options.model = model;
  options.vocabulary = *model.vocabulary;
  options.end_tokens = {options.vocabulary};  // Every response runs to its limit.
  options.sampling.max_new_tokens = Tokens(asked.at("new_tokens").get<std::int64_t>());
  options.model.context =
      Tokens(static_cast<std::int64_t>(longest)) + options.sampling.max_new_tokens;
  options.concurrency = static_cast<std::int32_t>(slots);
  TEMPER_TRY(const auto engine, rollout::make_torch_engine(options));
  TEMPER_TRY_STATUS(engine->stage(PolicyVersion(0), std::as_bytes(std::span(image))));
  TEMPER_TRY_STATUS(engine->commit(PolicyVersion(0)));
  // Of vectors, which stay in float32, there are few.
  const auto bytes = static_cast<std::size_t>(layout.size()) * (half ? 2 : sizeof(float));
  TEMPER_TRY(const auto warm, generate(*engine, {batches.front().front()}, bytes));
  nlohmann::json found = nlohmann::json::array();
  for (const Prompts& batch : batches) {
    TEMPER_TRY(auto one, generate(*engine, batch, bytes));
    found.push_back(std::move(one));
  }
  return nlohmann::json{{"batches", std::move(found)}, {"read", std::move(read)}};
}

}  // namespace
}  // namespace temper

int main() {
  const auto asked = nlohmann::json::parse(std::cin, nullptr, false);
  if (asked.is_discarded())
    return 2;
  const auto said = temper::run(asked);
  if (!said) {
    fmt::print(stderr, "{}\n", said.error().context);
    return 1;
  }
  std::cout << *said << '\n';
}
