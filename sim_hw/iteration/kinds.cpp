// The kind of a whole RL iteration.
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/iteration/one_card.hpp"
#include "sim_hw/predict/predict.hpp"

#include <fmt/format.h>

#include <array>

namespace temper::sim_hw {
namespace {

Result<double> at_least_one(const Params& p, std::string_view key) {
  TEMPER_TRY(const std::int64_t value, p.integer(key));
  if (value < 1)
    return invalid_input(fmt::format("{}={}: must be 1 or more", key, value));
  return static_cast<double>(value);
}

/// `lengths=FILE`, or `mean_out` with a spread, or every response of `max_new` tokens.
Result<std::vector<double>> response_lengths(const PredictContext& context,
                                             const Params& p,
                                             double count,
                                             double max_new) {
  std::vector<double> lengths;
  if (p.has("lengths")) {
    TEMPER_TRY(const std::string file, p.text("lengths"));
    TEMPER_TRY(lengths, read_lengths(context.folder / file));
  } else {
    TEMPER_TRY(const double mean, p.number("mean_out", max_new));
    TEMPER_TRY(const double spread, p.number("p99_over_median", 1));
    TEMPER_TRY(lengths, lognormal_lengths(static_cast<std::size_t>(count), mean, max_new, spread));
  }
  if (static_cast<double>(lengths.size()) != count)
    return invalid_input(fmt::format(
        "lengths holds {} responses; prompts x group is {}", lengths.size(), count));
  if (lengths.back() > max_new)
    return invalid_input(
        fmt::format("lengths holds {}, above max_new={}", lengths.back(), max_new));
  return lengths;
}

Result<Prediction> predict_iteration(const PredictContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const std::string name, r.params.text("model"));
  TEMPER_TRY(const ModelSpec* model, context.catalog.model(name));
  TEMPER_TRY(const double prompts, at_least_one(r.params, "prompts"));
  TEMPER_TRY(const double group, at_least_one(r.params, "group"));
  TEMPER_TRY(const double max_new, at_least_one(r.params, "max_new"));
  IterationWork work;
  TEMPER_TRY(work.prompt, at_least_one(r.params, "prompt_len"));
  TEMPER_TRY(work.lengths, response_lengths(context, r.params, prompts * group, max_new));
  const OneCardIteration it =
      one_card_iteration(make_device(*hardware), make_step_model(*model), work);
  Prediction out;
  out.metrics = {{"time",
                  "s",
                  it.total(),
                  {{"prefill", 1, it.prefill, ""},
                   {"decode", 1, it.decode, ""},
                   {"reference log-probs", 1, it.reference, ""},
                   {"update", 1, it.update, ""},
                   {"weight sync", 1, it.weight_sync, ""}}},
                 {"prefill", "s", it.prefill, {}},
                 {"decode_total", "s", it.decode, {}},
                 {"reference_logprobs", "s", it.reference, {}},
                 {"update", "s", it.update, {}},
                 {"weight_sync", "s", it.weight_sync, {}},
                 {"response_tokens", "count", it.response_tokens, {}},
                 {"longest", "count", it.longest, {}},
                 {"decode_steps", "count", it.decode_steps, {}},
                 {"micro_batches", "count", it.micro_batches, {}},
                 {"padded_tokens", "count", it.padded_tokens, {}}};
  return out;
}

constexpr std::array kKinds{
    Kind{"rl_iteration",
         "One synchronous GRPO iteration, all roles on one device.",
         "model; prompts; group; prompt_len; max_new; lengths=FILE | mean_out; p99_over_median=1",
         predict_iteration},
};

}  // namespace

std::span<const Kind> iteration_kinds() {
  return kKinds;
}

}  // namespace temper::sim_hw
