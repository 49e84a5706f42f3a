// What the differentiable operations share: operands of matrix products, raw access to tensors, and
// pointers saved for a backward pass. Includes libtorch: see functions.hpp.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model_folder/bfloat16.hpp"
#include "actors/policy/internal/matmul.hpp"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <vector>

namespace temper::actors {

/// How matrix products are computed. Must outlive the graph. A graph keeps rounded inputs; trained
/// weights are rounded for each product, because a copy of all would need 2 bytes a parameter.
/// Frozen ones are held rounded.
struct Products {
  ComputeType type = ComputeType::Float32;
  std::vector<Bfloat16> rounded_weight{};  ///< Scratch.
};

// libtorch saves only tensors and plain values for the backward pass, so borrowed objects are saved
// as addresses.
template <class T>
void save_pointer(torch::autograd::AutogradContext* ctx, const char* name, const T* pointer) {
  ctx->saved_data[name] = reinterpret_cast<std::int64_t>(pointer);
}
template <class T>
T& saved(torch::autograd::AutogradContext* ctx, const char* name) {
  return *reinterpret_cast<T*>(ctx->saved_data[name].toInt());
}

/// The elements of a contiguous tensor, owned by it.
const float* in(const at::Tensor& t);
float* out(const at::Tensor& t);
Bfloat16* halves(const at::Tensor& t);

/// As an operand of a product: itself, or rounded.
at::Tensor operand(const at::Tensor& x, const Products& products);
/// Whether a matrix is held in bfloat16, as frozen weights are.
bool is_rounded(const at::Tensor& w);
/// The same as operand() for a matrix; valid until the next call.
const Bfloat16* rounded_weight(const at::Tensor& w, Products& products);
/// y (+)= x w^T of an operand x.
void multiply(const at::Tensor& x,
              const at::Tensor& w,
              at::Tensor& y,
              Products& products,
              Accumulate accumulate = Accumulate::No);
/// dy w of an operand dy: the gradient with respect to the input.
at::Tensor input_gradient(const at::Tensor& dy, const at::Tensor& w, Products& products);

}  // namespace temper::actors
