#include "actors/policy/internal/frozen_linear.hpp"

#include "actors/policy/internal/functions.hpp"
#include "core/check.hpp"

#include <ATen/ops/empty.h>

namespace temper::actors {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct FrozenLinear : torch::autograd::Function<FrozenLinear> {
  // The leaf is an argument so that autograd records a layer whose input needs no gradient.
  // NOLINTNEXTLINE(readability-function-size)
  static Tensor forward(AutogradContext* ctx,
                        const Tensor& x,
                        const Tensor& w,
                        [[maybe_unused]] const Tensor& leaf,
                        const LinearInput* input,
                        std::int64_t tensor,
                        AdapterPass* pass,
                        Products* products) {
    Tensor y = at::empty({x.size(0), w.size(0)}, x.options());
    multiply(operand(x, *products), w, y, *products);
    const auto targets = pass->adapter->layout().targets_in(static_cast<std::size_t>(tensor));
    for (const AdapterTarget& target : targets)
      add_low_rank(*pass->adapter, target, {in(x), out(y), x.size(0), w.size(0)}, pass->scratch);
    if (targets.empty())
      ctx->save_for_backward({w});
    else if (!input->from.defined())
      ctx->save_for_backward({w, x});
    else
      ctx->save_for_backward({w, {}, input->from, input->norm});
    ctx->saved_data["epsilon"] = static_cast<double>(input->epsilon);
    ctx->saved_data["tensor"] = tensor;
    ctx->saved_data["input"] = x.requires_grad();
    save_pointer(ctx, "pass", pass);
    save_pointer(ctx, "products", products);
    return y;
  }

  /// x of the saved tensors: w, and x or what it is computed from.
  static Tensor input_of(const variable_list& saved, const c10::IValue& epsilon) {
    if (saved[1].defined())
      return saved[1];
    return saved[3].defined()
               ? normalize(saved[2], saved[3], static_cast<float>(epsilon.toDouble()))
               : gated(saved[2]);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& dy) {
    const auto tensors = ctx->get_saved_variables();
    auto& products = saved<Products>(ctx, "products");
    auto& pass = saved<AdapterPass>(ctx, "pass");
    const Tensor d = dy[0].contiguous();
    Tensor dx;
    if (ctx->saved_data["input"].toBool())
      dx = input_gradient(operand(d, products), tensors[0], products);
    const auto tensor = static_cast<std::size_t>(ctx->saved_data["tensor"].toInt());
    const auto targets = pass.adapter->layout().targets_in(tensor);
    const Tensor x = targets.empty() ? Tensor() : input_of(tensors, ctx->saved_data["epsilon"]);
    for (const AdapterTarget& target : targets) {
      TEMPER_CHECK(pass.gradients != nullptr, "gradients must be allocated before backward");
      low_rank_backward(
          *pass.adapter,
          target,
          {in(x), in(d), d.size(0), d.size(1), dx.defined() ? out(dx) : nullptr, pass.gradients},
          pass.scratch);
    }
    return {dx, Variable(), Variable(), Variable(), Variable(), Variable(), Variable()};
  }
};

}  // namespace

Tensor frozen_linear(const LinearInput& input,
                     const Tensor& w,
                     std::size_t tensor,
                     AdapterPass& pass,
                     Products& products) {
  return FrozenLinear::apply(
      input.x, w, pass.leaf, &input, static_cast<std::int64_t>(tensor), &pass, &products);
}

}  // namespace temper::actors
