#include "actors/policy/internal/operands.hpp"

#include "actors/policy/internal/parallel.hpp"
#include "core/check.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace temper::actors {

const float* in(const at::Tensor& t) {
  TEMPER_DCHECK(t.is_contiguous(), "kernels take contiguous rows");
  return t.data_ptr<float>();
}

float* out(const at::Tensor& t) {
  return t.data_ptr<float>();
}

Bfloat16* halves(const at::Tensor& t) {
  return reinterpret_cast<Bfloat16*>(t.data_ptr<at::BFloat16>());
}

at::Tensor operand(const at::Tensor& x, const Products& products) {
  if (products.type == ComputeType::Float32)
    return x;
  at::Tensor rounded = at::empty(x.sizes(), x.options().dtype(at::kBFloat16));
  round_array(in(x), halves(rounded), x.numel());
  return rounded;
}

bool is_rounded(const at::Tensor& w) {
  return w.scalar_type() == at::kBFloat16;
}

const Bfloat16* rounded_weight(const at::Tensor& w, Products& products) {
  if (is_rounded(w))
    return halves(w);
  auto& scratch = products.rounded_weight;
  scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(w.numel())));
  round_array(in(w), scratch.data(), w.numel());
  return scratch.data();
}

void multiply(const at::Tensor& x,
              const at::Tensor& w,
              at::Tensor& y,
              Products& products,
              Accumulate accumulate) {
  const std::int64_t rows = x.size(0);
  if (products.type == ComputeType::Float32)
    matmul_nt(in(x), in(w), out(y), rows, w.size(1), w.size(0), accumulate);
  else
    matmul_nt(
        halves(x), rounded_weight(w, products), out(y), rows, w.size(1), w.size(0), accumulate);
}

at::Tensor input_gradient(const at::Tensor& dy, const at::Tensor& w, Products& products) {
  const std::int64_t rows = dy.size(0);
  at::Tensor dx = at::empty({rows, w.size(1)}, at::kFloat);
  if (products.type == ComputeType::Float32)
    matmul_nn(in(dy), in(w), out(dx), rows, w.size(0), w.size(1));
  else
    matmul_nn(halves(dy), rounded_weight(w, products), out(dx), rows, w.size(0), w.size(1));
  return dx;
}

}  // namespace temper::actors
