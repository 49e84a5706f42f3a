// Needs a model folder, so `./x bench` does not run it:  compute_dtypes FOLDER [--repeats N]
// Measures what `model.compute_dtype` changes for a model folder, in one process and with the types
// alternating:
//   generate:  prompts and responses of a batch
//   train:     a step of the same batch
//   publish:   an image of the weights, and reading it
// in seconds, seconds of processor time, and bytes; medians of several repeats. Before that, the
// rate of a large matrix product.
#include "actors/model_folder/model_folder.hpp"
#include "actors/policy/compute.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/shared_memory/shared_buffer.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"
#include "rollout/torch/engine.hpp"
#include "trainer/torch/engine.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>

namespace {

using namespace temper;
using actors::ComputeType;

struct Options {
  std::string model;
  std::int32_t threads = 2;
  std::int32_t repeats = 3;
  std::int32_t groups = 8;
  std::int32_t responses = 8;
  std::int64_t prompt = 28;
  std::int64_t response = 14;
};

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto in_seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return in_seconds(used.ru_utime) + in_seconds(used.ru_stime);
}

/// Repeats of one measurement, by what is measured and the type.
class Table {
 public:
  template <class F>
  void measure(const std::string& what, ComputeType type, F f) {
    const Time start = clock_.now();
    const double processor = processor_seconds();
    f();
    Cell& cell = cells_[{what, type}];
    cell.processor.push_back(processor_seconds() - processor);
    cell.seconds.push_back(seconds(clock_.now() - start));
  }

  void print() const {
    fmt::print("{:<10} {:<9} {:>10} {:>16}\n", "", "", "seconds", "processor time");
    for (const auto& [key, cell] : cells_) {
      fmt::print("{:<10} {:<9} {:>10.3f} {:>16.3f}\n",
                 key.first,
                 name_of(key.second),
                 median(cell.seconds),
                 median(cell.processor));
    }
  }

 private:
  struct Cell {
    std::vector<double> seconds, processor;
  };
  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }

  const RealClock clock_;
  std::map<std::pair<std::string, ComputeType>, Cell> cells_;
};

std::vector<trainer::TrainSample> make_batch(const Options& o, std::int32_t vocabulary) {
  Random random(1, "batch");
  const auto tokens = [&](std::int64_t n) {
    std::vector<std::int32_t> out;
    for (std::int64_t i = 0; i < n; ++i)
      out.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
    return out;
  };
  std::vector<trainer::TrainSample> batch;
  for (std::int32_t g = 0; g < o.groups; ++g) {
    const auto prompt = tokens(o.prompt);
    for (std::int32_t i = 0; i < o.responses; ++i) {
      trainer::TrainSample s;
      s.group = GroupId(static_cast<std::uint64_t>(g));
      s.prompt = prompt;
      s.response = tokens(o.response);
      s.behaviour_logprobs.assign(s.response.size(), -10.0f);
      s.reward = i % 2;
      batch.push_back(std::move(s));
    }
  }
  return batch;
}

/// Both engines of one type.
struct Engines {
  ComputeType type;
  std::unique_ptr<rollout::Engine> rollout;
  std::unique_ptr<trainer::Engine> trainer;
  PolicyVersion version{};
};

Result<Engines> make_engines(const Options& o, ComputeType type) {
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(o.model));
  actors::ModelConfig model = folder.model();
  model.compute_dtype = type;
  model.context = Tokens(o.prompt + o.response);
  TEMPER_TRY(const auto layout, actors::Layout::make(model, 0));
  TEMPER_TRY(auto weights, actors::Weights::from_folder(layout, folder));
  rollout::TorchEngineOptions r;
  r.model = model;
  r.vocabulary = layout.vocabulary();
  r.end_tokens = {layout.vocabulary()};  // Every response has all its tokens.
  r.sampling.max_new_tokens = Tokens(o.response);
  r.concurrency = o.groups * o.responses;
  TEMPER_TRY(auto rollout, rollout::make_torch_engine(r));
  trainer::TorchEngineOptions t;
  t.model = model;
  t.vocabulary = layout.vocabulary();
  t.algorithm.minibatches = 1;
  t.algorithm.kl = 0;
  t.algorithm.learning_rate = 1e-6;
  t.longest_response = Tokens(o.response);
  return Engines{type, std::move(rollout), trainer::make_torch_engine(t, std::move(weights)), {}};
}

Status publish(Engines& e, Table& table, Bytes& bytes) {
  Status status;
  const auto once = [&]() -> Status {
    e.version = next(e.version);
    TEMPER_TRY(auto writer, actors::SharedBuffer::Writer::create(e.version));
    TEMPER_TRY_STATUS(e.trainer->publish([&](auto part) { return writer.append(part); }));
    TEMPER_TRY(const auto buffer, std::move(writer).finish());
    bytes = buffer.handle().bytes;
    TEMPER_TRY(const auto image, actors::MappedBuffer::open(buffer.handle()));
    TEMPER_TRY_STATUS(e.rollout->stage(e.version, image.bytes()));
    return e.rollout->commit(e.version);
  };
  table.measure("publish", e.type, [&] { status = once(); });
  return status;
}

Status generate(Engines& e, const std::vector<trainer::TrainSample>& batch, Table& table) {
  Status status;
  table.measure("generate", e.type, [&] {
    for (std::size_t i = 0; i < batch.size(); ++i)
      e.rollout->add({ResponseId(i), batch[i].prompt});
    while (status && e.rollout->load() > 0) {
      if (const auto step = e.rollout->step(); !step)
        status = step.error();
    }
  });
  return status;
}

Status run(const Options& o) {
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(o.model));
  const auto batch = make_batch(o, folder.model().vocabulary.value_or(0));
  std::vector<Engines> both;
  for (const ComputeType type : {ComputeType::Float32, ComputeType::Bfloat16}) {
    TEMPER_TRY(auto engines, make_engines(o, type));
    both.push_back(std::move(engines));
  }
  Table warm_up;
  Table table;
  for (std::int32_t repeat = 0; repeat <= o.repeats; ++repeat) {
    Table& to = repeat == 0 ? warm_up : table;
    for (Engines& e : both) {
      Bytes bytes;
      TEMPER_TRY_STATUS(publish(e, to, bytes));
      TEMPER_TRY_STATUS(generate(e, batch, to));
      Status status;
      to.measure("train", e.type, [&] {
        if (const auto updated = e.trainer->update(batch); !updated)
          status = updated.error();
      });
      TEMPER_TRY_STATUS(status);
      if (repeat == 0)
        fmt::print("{}: products at {:.0f} GFLOP/s, image of {} bytes, engine's weights {} bytes\n",
                   name_of(e.type),
                   actors::measure_gemm_rate(20, e.type).count() / 1e9,
                   bytes.count(),
                   e.rollout->memory().weights.count());
    }
  }
  table.print();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Cost of training, generation and publication by compute type."};
  app.add_option("model", o.model, "Model folder")->required();
  app.add_option("--threads", o.threads);
  app.add_option("--repeats", o.repeats);
  app.add_option("--groups", o.groups);
  app.add_option("--responses", o.responses);
  CLI11_PARSE(app, argc, argv);
  temper::actors::set_compute_threads(o.threads);
  if (const Status status = run(o); !status) {
    fmt::print(stderr, "{}\n", status.error().context);
    return 1;
  }
  return 0;
}
