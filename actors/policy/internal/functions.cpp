#include "actors/policy/internal/functions.hpp"

#include "actors/policy/internal/attention.hpp"
#include "actors/policy/internal/matmul.hpp"
#include "actors/policy/internal/operands.hpp"
#include "actors/policy/internal/parallel.hpp"
#include "core/check.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

namespace temper::actors {

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Where the gradient of a weight is accumulated.
float* gradient_of(const Tensor& w) {
  TEMPER_CHECK(w.grad().defined(), "gradients must be allocated before backward");
  return out(w.grad());
}

/// Returns the gradient with respect to x, an operand; adds that of w to its own.
Tensor linear_gradient(const Tensor& x, const Tensor& w, const Tensor& d, Products& products) {
  const std::int64_t rows = x.size(0);
  const Tensor dy = operand(d, products);
  Tensor dx = at::empty(x.sizes(), w.options());
  if (products.type == ComputeType::Float32) {
    matmul_nn(in(dy), in(w), out(dx), rows, w.size(0), w.size(1));
    matmul_tn(in(dy), in(x), gradient_of(w), rows, w.size(0), w.size(1), Accumulate::Yes);
  } else {
    matmul_nn(halves(dy), rounded_weight(w, products), out(dx), rows, w.size(0), w.size(1));
    matmul_tn(halves(dy), halves(x), gradient_of(w), rows, w.size(0), w.size(1), Accumulate::Yes);
  }
  return dx;
}

struct Embed : Function<Embed> {
  static Tensor forward(AutogradContext* ctx,
                        const Tensor& w,
                        const Pack* pack,
                        const Products* products) {
    ctx->save_for_backward({w});
    save_pointer(ctx, "pack", pack);
    const std::int64_t width = w.size(1);
    Tensor y = at::empty({pack->rows(), width}, at::kFloat);
    float* to = out(y);
    for (const std::int32_t token : pack->tokens()) {
      if (is_rounded(w))
        to = std::transform(
            halves(w) + token * width, halves(w) + (token + 1) * width, to, to_float);
      else
        to = std::copy_n(in(w) + token * width, width, to);
    }
    // As the engine that generates has it.
    if (products->type == ComputeType::Bfloat16 && !is_rounded(w))
      std::transform(out(y), to, out(y), [](float x) { return to_float(to_bfloat16(x)); });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const Tensor w = ctx->get_saved_variables()[0];
    const Tensor d = dy[0].contiguous();
    const std::int64_t width = w.size(1);
    const float* from = in(d);
    float* gradient = gradient_of(w);
    for (const std::int32_t token : saved<const Pack>(ctx, "pack").tokens()) {
      float* to = gradient + token * width;
      for (std::int64_t i = 0; i < width; ++i)
        to[i] += *from++;
    }
    return {Variable(), Variable(), Variable()};
  }
};

struct Linear : Function<Linear> {
  static Tensor forward(AutogradContext* ctx,
                        const Tensor& x,
                        const Tensor& w,
                        Products* products) {
    const Tensor from = operand(x, *products);
    ctx->save_for_backward({from, w});
    save_pointer(ctx, "products", products);
    Tensor y = at::empty({x.size(0), w.size(0)}, x.options());
    multiply(from, w, y, *products);
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto tensors = ctx->get_saved_variables();
    auto& products = saved<Products>(ctx, "products");
    return {linear_gradient(tensors[0], tensors[1], dy[0].contiguous(), products),
            Variable(),
            Variable()};
  }
};

struct LinearOnto : Function<LinearOnto> {
  static Tensor forward(AutogradContext* ctx,
                        const Tensor& residual,
                        const Tensor& x,
                        const Tensor& w,
                        Products* products) {
    const Tensor from = operand(x, *products);
    ctx->save_for_backward({from, w});
    save_pointer(ctx, "products", products);
    Tensor y = residual.clone();
    multiply(from, w, y, *products, Accumulate::Yes);
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto tensors = ctx->get_saved_variables();
    const Tensor d = dy[0].contiguous();
    auto& products = saved<Products>(ctx, "products");
    return {d, linear_gradient(tensors[0], tensors[1], d, products), Variable(), Variable()};
  }
};

struct Norm : Function<Norm> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w, double epsilon) {
    Tensor y = at::empty_like(x);
    Tensor inverse = at::empty({x.size(0)}, x.options());
    const NormRows shape{x.size(0), x.size(1), static_cast<float>(epsilon)};
    for_each_range(shape.rows, shape.width, [&](std::int64_t begin, std::int64_t end) {
      rms_norm(in(x) + begin * shape.width,
               in(w),
               out(y) + begin * shape.width,
               out(inverse) + begin,
               {end - begin, shape.width, shape.epsilon});
    });
    ctx->save_for_backward({x, w, inverse});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto tensors = ctx->get_saved_variables();
    const Tensor& x = tensors[0];
    const Tensor d = dy[0].contiguous();
    Tensor dx = at::empty_like(x);
    Tensor dw = at::zeros_like(tensors[1]);
    rms_norm_backward(
        in(x), in(tensors[1]), in(tensors[2]), in(d), out(dx), out(dw), x.size(0), x.size(1));
    return {dx, dw, Variable()};
  }
};

struct HeadNorms : Function<HeadNorms> {
  static Tensor forward(AutogradContext* ctx,
                        const Tensor& qkv,
                        const Tensor& of_queries,
                        const Tensor& of_keys,
                        const AttentionContext* c) {
    const AttentionShape& s = c->shape;
    const std::int64_t heads = s.heads + s.kv_heads;
    const std::int64_t keys = s.heads * s.head_dim;
    Tensor y = qkv.clone();
    Tensor inverse = at::empty({qkv.size(0), heads}, qkv.options());
    for (std::int64_t r = 0; r < qkv.size(0); ++r) {
      const float* row = in(qkv) + r * qkv.size(1);
      float* to = out(y) + r * qkv.size(1);
      float* rms = out(inverse) + r * heads;
      rms_norm(row, in(of_queries), to, rms, {s.heads, s.head_dim, c->epsilon});
      rms_norm(
          row + keys, in(of_keys), to + keys, rms + s.heads, {s.kv_heads, s.head_dim, c->epsilon});
    }
    ctx->save_for_backward({qkv, of_queries, of_keys, inverse});
    save_pointer(ctx, "context", c);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const AttentionShape& s = saved<const AttentionContext>(ctx, "context").shape;
    const auto tensors = ctx->get_saved_variables();
    const Tensor& qkv = tensors[0];
    const Tensor d = dy[0].contiguous();
    const std::int64_t keys = s.heads * s.head_dim;
    Tensor dx = d.clone();  // Gradients of the values pass through.
    Tensor d_queries = at::zeros_like(tensors[1]);
    Tensor d_keys = at::zeros_like(tensors[2]);
    for (std::int64_t r = 0; r < qkv.size(0); ++r) {
      const std::int64_t at = r * qkv.size(1);
      const float* rms = in(tensors[3]) + r * (s.heads + s.kv_heads);
      const auto backward =
          [&](std::int64_t from, const Tensor& w, const float* of, Tensor& dw, std::int64_t heads) {
            rms_norm_backward(in(qkv) + at + from,
                              in(w),
                              of,
                              in(d) + at + from,
                              out(dx) + at + from,
                              out(dw),
                              heads,
                              s.head_dim);
          };
      backward(0, tensors[1], rms, d_queries, s.heads);
      backward(keys, tensors[2], rms + s.heads, d_keys, s.kv_heads);
    }
    return {dx, d_queries, d_keys, Variable()};
  }
};

struct Gated : Function<Gated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate_up) {
    ctx->save_for_backward({gate_up});
    Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    const std::int64_t f = y.size(1);
    for_each_range(y.size(0), 2 * f, [&](std::int64_t begin, std::int64_t end) {
      swiglu(in(gate_up) + begin * 2 * f, out(y) + begin * f, end - begin, f);
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto tensors = ctx->get_saved_variables();
    const Tensor d = dy[0].contiguous();
    Tensor dx = at::empty_like(tensors[0]);
    const std::int64_t f = d.size(1);
    for_each_range(d.size(0), 3 * f, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * 2 * f;
      swiglu_backward(in(tensors[0]) + at, in(d) + begin * f, out(dx) + at, end - begin, f);
    });
    return {dx};
  }
};

/// Calls f(row, prefix rows, own rows before and with it) for every row of every sequence.
template <class F>
void for_each_row(const Pack& pack, F f) {
  for (const PackedSequence& s : pack.sequences()) {
    for (std::int64_t i = 0; i < s.count; ++i)
      f(s.begin + i, s, i + 1);
  }
}

struct Attention : Function<Attention> {
  static AttentionQuery query(const AttentionContext& c,
                              const float* qkv,
                              std::int64_t width,
                              std::int64_t row,
                              const PackedSequence& s,
                              std::int64_t own) {
    const std::int64_t d = c.shape.heads * c.shape.head_dim;
    AttentionQuery q;
    q.query = qkv + row * width;
    q.runs[0] = {qkv + s.prefix_begin * width + d, s.prefix_count};
    q.runs[1] = {qkv + s.begin * width + d, own};
    return q;
  }

  static Tensor forward(AutogradContext* ctx, const Tensor& qkv, const AttentionContext* c) {
    const std::int64_t width = qkv.size(1);
    const std::int64_t d = c->shape.heads * c->shape.head_dim;
    Tensor turned = qkv.clone();
    const auto turning = c->shape.heads + c->shape.kv_heads;
    rotate(out(turned), width, turning, *c->rotary, c->pack->positions(), Turn::Forward);
    Tensor mixed = at::empty({qkv.size(0), d}, qkv.options());
    Tensor log_sums = at::empty({qkv.size(0), c->shape.heads}, qkv.options());
    std::vector<AttentionQuery> queries;
    for_each_row(*c->pack, [&](std::int64_t row, const PackedSequence& s, std::int64_t own) {
      AttentionQuery q = query(*c, in(turned), width, row, s, own);
      q.out = out(mixed) + row * d;
      q.log_sums = out(log_sums) + row * c->shape.heads;
      queries.push_back(q);
    });
    attend_all(queries, c->shape, {width, c->shape.kv_heads * c->shape.head_dim});
    ctx->save_for_backward({turned, mixed, log_sums});
    save_pointer(ctx, "context", c);
    return mixed;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto& c = saved<const AttentionContext>(ctx, "context");
    const auto tensors = ctx->get_saved_variables();
    const Tensor& turned = tensors[0];
    const Tensor d_out = dy[0].contiguous();
    const std::int64_t width = turned.size(1);
    const std::int64_t d = d_out.size(1);
    const KeyLayout layout{width, c.shape.kv_heads * c.shape.head_dim};
    Tensor d_qkv = at::zeros_like(turned);
    std::vector<AttentionPair> pairs;
    std::vector<std::int64_t> families;  // A prompt and its responses.
    for_each_row(*c.pack, [&](std::int64_t row, const PackedSequence& s, std::int64_t own) {
      AttentionQuery q = query(c, in(turned), width, row, s, own);
      q.out = out(tensors[1]) + row * d;
      q.log_sums = out(tensors[2]) + row * c.shape.heads;
      AttentionGradient gradient;
      gradient.d_out = in(d_out) + row * d;
      gradient.d_query = out(d_qkv) + row * width;
      gradient.d_keys[0] = out(d_qkv) + s.prefix_begin * width + d;
      gradient.d_keys[1] = out(d_qkv) + s.begin * width + d;
      if (s.prefix_count == 0 && own == 1)
        families.push_back(std::ssize(pairs));
      pairs.push_back({q, gradient});
    });
    attend_all_backward(pairs, families, c.shape, layout);
    const auto turning = c.shape.heads + c.shape.kv_heads;
    rotate(out(d_qkv), width, turning, *c.rotary, c.pack->positions(), Turn::Back);
    return {d_qkv, Variable()};
  }
};

/// Calls visit(index, target) for the targets and then the candidates.
template <class Visit>
void for_each_target(const Pack& pack, const Visit& visit) {
  std::size_t i = 0;
  for (const auto* const list : {&pack.targets(), &pack.candidates()}) {
    for (const Pack::Target& target : *list)
      visit(i++, target);
  }
}

struct TargetLogprobs : Function<TargetLogprobs> {
  static Tensor forward(AutogradContext* ctx,
                        const Tensor& logits,
                        const Pack* pack,
                        double temperature) {
    const std::int64_t width = logits.size(1);
    const auto t = static_cast<float>(temperature);
    Tensor y =
        at::empty({std::ssize(pack->targets()) + std::ssize(pack->candidates())}, logits.options());
    float* logprobs = out(y);
    for_each_target(*pack, [&](std::size_t i, const Pack::Target& target) {
      logprobs[i] = in(logits)[target.output * width + target.token] / t;
    });
    std::vector<float> log_sums(static_cast<std::size_t>(logits.size(0)));
    for_each_range(logits.size(0), width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* row = out(logits) + i * width;
        log_sums[static_cast<std::size_t>(i)] = softmax(row, row, width, t);
      }
    });
    for_each_target(*pack, [&](std::size_t i, const Pack::Target& target) {
      logprobs[i] -= log_sums[static_cast<std::size_t>(target.output)];
    });
    ctx->save_for_backward({logits});
    save_pointer(ctx, "pack", pack);
    ctx->saved_data["temperature"] = temperature;
    return y;
  }

  // d logits = (sum of d over the row's targets, at each target, - that sum * p) / temperature, in
  // the array of p.
  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto& pack = saved<const Pack>(ctx, "pack");
    const auto t = static_cast<float>(ctx->saved_data["temperature"].toDouble());
    Tensor p = ctx->get_saved_variables()[0].detach();
    const Tensor d = dy[0].contiguous();
    const float* d_logprobs = in(d);
    const std::int64_t width = p.size(1);
    std::vector<float> sums(static_cast<std::size_t>(p.size(0)));
    for_each_target(pack, [&](std::size_t i, const Pack::Target& target) {
      sums[static_cast<std::size_t>(target.output)] += d_logprobs[i];
    });
    for_each_range(p.size(0), width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const float scale = -sums[static_cast<std::size_t>(i)] / t;
        float* row = out(p) + i * width;
        std::for_each(row, row + width, [scale](float& x) { x *= scale; });
      }
    });
    for_each_target(pack, [&](std::size_t i, const Pack::Target& target) {
      out(p)[target.output * width + target.token] += d_logprobs[i] / t;
    });
    return {p, Variable(), Variable()};
  }
};

}  // namespace

Tensor embed(const Tensor& w, const Pack& pack, const Products& products) {
  return Embed::apply(w, &pack, &products);
}
Tensor linear(const Tensor& x, const Tensor& w, Products& products) {
  return Linear::apply(x, w, &products);
}
Tensor linear_onto(const Tensor& residual, const Tensor& x, const Tensor& w, Products& products) {
  return LinearOnto::apply(residual, x, w, &products);
}
Tensor normalize(const Tensor& x, const Tensor& w, float epsilon) {
  return Norm::apply(x, w, static_cast<double>(epsilon));
}
Tensor normalize_heads(const Tensor& qkv,
                       const Tensor& of_queries,
                       const Tensor& of_keys,
                       const AttentionContext& context) {
  return HeadNorms::apply(qkv, of_queries, of_keys, &context);
}
Tensor gated(const Tensor& gate_up) {
  return Gated::apply(gate_up);
}
Tensor attention(const Tensor& qkv, const AttentionContext& context) {
  return Attention::apply(qkv, &context);
}
Tensor target_logprobs(const Tensor& logits, const Pack& pack, double temperature) {
  return TargetLogprobs::apply(logits, &pack, temperature);
}

}  // namespace temper::actors
