#include "actors/policy/internal/matmul.hpp"

#include "core/check.hpp"

#include <algorithm>
#include <vector>

// Part of oneDNN's C interface, declared here because libtorch ships the library without its
// headers. Row-major: C[M, N] = alpha * op(A)[M, K] * op(B)[K, N] + beta * C. The second function
// is exported, but not in dnnl.h; a library may lack it.
extern "C" int dnnl_sgemm(char transa,
                          char transb,
                          std::int64_t m,
                          std::int64_t n,
                          std::int64_t k,
                          float alpha,
                          const float* a,
                          std::int64_t lda,
                          const float* b,
                          std::int64_t ldb,
                          float beta,
                          float* c,
                          std::int64_t ldc);
extern "C" __attribute__((weak)) int dnnl_gemm_bf16bf16f32(char transa,
                                                           char transb,
                                                           std::int64_t m,
                                                           std::int64_t n,
                                                           std::int64_t k,
                                                           float alpha,
                                                           const std::uint16_t* a,
                                                           std::int64_t lda,
                                                           const std::uint16_t* b,
                                                           std::int64_t ldb,
                                                           float beta,
                                                           float* c,
                                                           std::int64_t ldc);

namespace temper::actors {

namespace {

float beta(const Product& p) {
  return p.accumulate == Accumulate::Yes ? 1.0f : 0.0f;
}

std::vector<float> widened(const Bfloat16* from, std::int64_t n) {
  std::vector<float> to(static_cast<std::size_t>(n));
  std::transform(from, from + n, to.begin(), to_float);
  return to;
}

}  // namespace

void multiply(const Product& p, const float* a, const float* b, float* c) {
  const int status =
      dnnl_sgemm(p.transa, p.transb, p.m, p.n, p.k, p.alpha, a, p.lda, b, p.ldb, beta(p), c, p.ldc);
  TEMPER_CHECK(status == 0, "oneDNN refused a matrix product");
}

/// Without AVX-512, for which oneDNN has no kernel, the same values are multiplied in float32.
void multiply(const Product& p, const Bfloat16* a, const Bfloat16* b, float* c) {
  const auto* a_bits = reinterpret_cast<const std::uint16_t*>(a);
  const auto* b_bits = reinterpret_cast<const std::uint16_t*>(b);
  const bool done = dnnl_gemm_bf16bf16f32 != nullptr && dnnl_gemm_bf16bf16f32(p.transa,
                                                                              p.transb,
                                                                              p.m,
                                                                              p.n,
                                                                              p.k,
                                                                              p.alpha,
                                                                              a_bits,
                                                                              p.lda,
                                                                              b_bits,
                                                                              p.ldb,
                                                                              beta(p),
                                                                              c,
                                                                              p.ldc) == 0;
  if (!done)
    multiply(p, widened(a, p.m * p.k).data(), widened(b, p.k * p.n).data(), c);
}

}  // namespace temper::actors
