#include "actors/policy/transformer.hpp"

#include "actors/policy/internal/frozen_linear.hpp"
#include "actors/policy/internal/functions.hpp"
#include "core/check.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace temper::actors {

void set_compute_threads(std::int32_t threads) {
  at::set_num_threads(threads);
  static const bool once = [] {
    at::set_num_interop_threads(1);  // May be set only once per process, before its first use.
    return true;
  }();
  static_cast<void>(once);
}

namespace {

const void* memory_of(const TensorValues& values) {
  return values.floats != nullptr ? static_cast<const void*>(values.floats) : values.rounded;
}

/// A tensor of the weights' own memory, which libtorch does not write.
at::Tensor view_of(const TensorValues& values, const std::vector<std::int64_t>& shape) {
  return at::from_blob(const_cast<void*>(memory_of(values)),
                       shape,
                       values.floats != nullptr ? at::kFloat : at::kBFloat16);
}

}  // namespace

struct Transformer::State {
  State(const Layout& l, WeightsView w, Adapter* adapter)
      : layout(l), weights(std::move(w)), rotary(l.model()) {
    low_rank.adapter = adapter;
    const ModelConfig& model = layout.model();
    products.type = model.compute_dtype;
    attention.rotary = &rotary;
    attention.pack = &pack;
    attention.shape = {model.heads, model.kv_heads, layout.head_dim()};
    attention.epsilon = static_cast<float>(model.norm_epsilon);
  }

  std::int64_t trained_size() const {
    return low_rank.adapter != nullptr ? low_rank.adapter->layout().size() : layout.size();
  }
  void bind();
  void bind_gradients();
  void bind_adapter();
  LinearInput normed(const at::Tensor& x, std::size_t norm) const;
  at::Tensor linear(const LinearInput& input, std::size_t tensor);
  at::Tensor linear_onto(const at::Tensor& residual, const LinearInput& input, std::size_t tensor);
  at::Tensor compute_rows();
  at::Tensor compute_logprobs(double temperature);
  at::Tensor compute_scores(double temperature, std::int32_t top_k, TopTokens& top);
  at::Tensor compute_values();
  std::span<const float> run(const Pack& next,
                             Graph graph,
                             const std::function<at::Tensor()>& compute);
  at::Tensor queries_keys_values(const LinearInput& input, std::size_t layer);

  const Layout layout;
  const WeightsView weights;
  const RotaryTable rotary;
  AttentionContext attention;
  Products products;
  Products exact;  ///< Of the head of a critic.
  Pack pack;
  std::vector<at::Tensor> parameters;  ///< Views of the weights; leaves of the graph if trained.
  AdapterPass low_rank;                ///< Without an adapter, the weights are trained.
  FloatBuffer gradients;
  at::Tensor outputs;  ///< Log-probs or values of the targets.
};

/// Creates the parameters if there are none or their memory has moved.
void Transformer::State::bind() {
  const bool bound =
      !parameters.empty() && parameters[0].data_ptr() == memory_of(weights.tensor(0));
  if (!bound) {
    parameters.clear();
    for (std::size_t i = 0; i < layout.tensors().size(); ++i)
      parameters.push_back(view_of(weights.tensor(i), layout.tensors()[i].shape)
                               .requires_grad_(low_rank.adapter == nullptr));
  }
  if (low_rank.adapter != nullptr)
    bind_adapter();
  else
    bind_gradients();
}

void Transformer::State::bind_adapter() {
  FloatBuffer& values = low_rank.adapter->values();
  if (!low_rank.leaf.defined() || low_rank.leaf.data_ptr<float>() != values.data())
    low_rank.leaf = at::from_blob(values.data(), {values.size()}).requires_grad_(true);
  low_rank.gradients = gradients.data();
}

/// Points the gradients of the parameters into the flat array.
void Transformer::State::bind_gradients() {
  const auto& tensors = layout.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    at::Tensor& gradient = parameters[i].mutable_grad();
    if (gradients.empty())
      gradient.reset();
    else if (!gradient.defined() ||
             gradient.data_ptr<float>() != gradients.data() + tensors[i].offset)
      gradient = at::from_blob(gradients.data() + tensors[i].offset, tensors[i].shape);
  }
}

LinearInput Transformer::State::normed(const at::Tensor& x, std::size_t norm) const {
  const at::Tensor& w = parameters[norm];
  return {normalize(x, w, attention.epsilon), x, w, attention.epsilon};
}

at::Tensor Transformer::State::linear(const LinearInput& input, std::size_t tensor) {
  if (low_rank.adapter != nullptr)
    return frozen_linear(input, parameters[tensor], tensor, low_rank, products);
  return temper::actors::linear(input.x, parameters[tensor], products);
}

at::Tensor Transformer::State::linear_onto(const at::Tensor& residual,
                                           const LinearInput& input,
                                           std::size_t tensor) {
  if (low_rank.adapter != nullptr)
    return at::add(residual, linear(input, tensor));
  return temper::actors::linear_onto(residual, input.x, parameters[tensor], products);
}

at::Tensor Transformer::State::queries_keys_values(const LinearInput& input, std::size_t layer) {
  const at::Tensor qkv = linear(input, layer + Layout::Qkv);
  switch (layout.model().architecture) {
    case Architecture::Llama:
      break;
    case Architecture::Qwen2:
      return at::add(qkv, parameters[layer + Layout::QkvBias]);
    case Architecture::Qwen3:
      return normalize_heads(qkv,
                             parameters[layer + Layout::QueryNorm],
                             parameters[layer + Layout::KeyNorm],
                             attention);
  }
  return qkv;
}

/// The rows of the pack's outputs, normalized for the head.
at::Tensor Transformer::State::compute_rows() {
  at::Tensor x = embed(parameters[layout.embedding()], pack, products);
  for (std::int32_t i = 0; i < layout.model().layers; ++i) {
    const std::size_t layer = layout.layer(i);
    const at::Tensor qkv = queries_keys_values(normed(x, layer + Layout::AttentionNorm), layer);
    x = linear_onto(x, {temper::actors::attention(qkv, attention)}, layer + Layout::Out);
    const at::Tensor gate_up = linear(normed(x, layer + Layout::FfnNorm), layer + Layout::GateUp);
    x = linear_onto(x, {gated(gate_up), gate_up}, layer + Layout::Down);
  }
  const auto rows = at::from_blob(const_cast<std::int64_t*>(pack.output_rows().data()),
                                  {static_cast<std::int64_t>(pack.output_rows().size())},
                                  at::TensorOptions().dtype(at::kLong));
  return normalize(at::index_select(x, 0, rows), parameters[layout.norm()], attention.epsilon);
}

at::Tensor Transformer::State::compute_logprobs(double temperature) {
  return target_logprobs(linear({compute_rows()}, layout.head()), pack, temperature);
}

/// The first of the most likely tokens has the probability p at least 1 / vocabulary, so that log p
/// is accurate; the others are less likely by the difference of their logits.
at::Tensor Transformer::State::compute_scores(double temperature,
                                              std::int32_t top_k,
                                              TopTokens& top) {
  const at::Tensor logits = linear({compute_rows()}, layout.head());
  const auto [largest, ids] = at::topk(logits, top_k);
  const at::Tensor logprobs = target_logprobs(logits, pack, temperature);
  const std::int64_t vocabulary = logits.size(1), k = top_k;
  const auto t = static_cast<float>(temperature);
  for (const Pack::Target& target : pack.targets()) {
    const float* own = largest.data_ptr<float>() + target.output * k;
    const std::int64_t* own_ids = ids.data_ptr<std::int64_t>() + target.output * k;
    const float* softmax = logits.data_ptr<float>() + target.output * vocabulary;
    const float first = std::log(softmax[own_ids[0]]);
    for (std::int64_t i = 0; i < k; ++i) {
      top.ids.push_back(static_cast<std::int32_t>(own_ids[i]));
      top.logprobs.push_back(first - (own[0] - own[i]) / t);
    }
  }
  return logprobs;
}

at::Tensor Transformer::State::compute_values() {
  const at::Tensor of_rows =
      temper::actors::linear(compute_rows(), parameters[layout.head()], exact);
  std::vector<std::int64_t> rows;
  rows.reserve(pack.targets().size());
  for (const Pack::Target& target : pack.targets())
    rows.push_back(target.output);
  return at::index_select(of_rows, 0, at::tensor(rows));
}

std::span<const float> Transformer::State::run(const Pack& next,
                                               Graph graph,
                                               const std::function<at::Tensor()>& compute) {
  outputs.reset();  // Frees the graph that refers to the previous pack.
  pack = next;
  if (pack.targets().empty())
    return {};
  bind();
  const at::AutoGradMode mode(graph == Graph::Keep);
  outputs = compute();
  return {outputs.data_ptr<float>(), static_cast<std::size_t>(outputs.numel())};
}

Transformer::Transformer(Weights& weights)
    : state_(std::make_unique<State>(weights.layout(), weights, nullptr)) {}
Transformer::Transformer(const Layout& layout, const InferenceWeights& frozen, Adapter& adapter)
    : state_(std::make_unique<State>(layout, frozen, &adapter)) {}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;

std::span<const float> Transformer::forward(const Pack& pack, double temperature, Graph graph) {
  return state_->run(pack, graph, [&] { return state_->compute_logprobs(temperature); });
}

Transformer::Scores Transformer::score(const Pack& pack, double temperature, std::int32_t top_k) {
  if (top_k == 0)
    return {forward(pack, temperature, Graph::Discard)};
  Scores scores;
  scores.logprobs = state_->run(
      pack, Graph::Discard, [&] { return state_->compute_scores(temperature, top_k, scores.top); });
  return scores;
}

std::span<const float> Transformer::values(const Pack& pack, Graph graph) {
  TEMPER_CHECK(state_->layout.tensors().back().shape[0] == 1,
               "values() requires the weights of a critic");
  return state_->run(pack, graph, [&] { return state_->compute_values(); });
}

void Transformer::backward(std::span<const float> d_outputs) {
  State& s = *state_;
  if (d_outputs.empty())
    return;
  TEMPER_CHECK(s.outputs.defined() && s.outputs.requires_grad(),
               "backward() requires forward(Graph::Keep) or values(Graph::Keep)");
  TEMPER_CHECK(std::ssize(d_outputs) == s.outputs.numel(), "expected one gradient per output");
  gradients();
  s.bind();
  const at::Tensor d = at::from_blob(const_cast<float*>(d_outputs.data()), s.outputs.sizes());
  torch::autograd::backward({s.outputs}, {d});
  s.outputs = s.outputs.detach();
}

FloatBuffer& Transformer::gradients() {
  if (state_->gradients.empty())
    state_->gradients = FloatBuffer(state_->trained_size());
  return state_->gradients;
}

void Transformer::zero_gradients() {
  if (state_->gradients.empty())
    gradients();  // Which are zero.
  else
    state_->gradients.fill(0);
}

void Transformer::free_gradients() {
  state_->gradients.release();
  state_->products.rounded_weight = {};
  for (at::Tensor& p : state_->parameters)
    p.mutable_grad().reset();
}

Bytes Transformer::gradient_bytes() const {
  return state_->gradients.bytes();
}

}  // namespace temper::actors
