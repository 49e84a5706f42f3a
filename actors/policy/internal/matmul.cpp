#include "actors/policy/internal/matmul.hpp"

#include "core/check.hpp"

// Part of oneDNN's stable C interface (dnnl.h), declared here because libtorch ships the library
// without its headers. Row-major: C[M, N] = alpha * op(A)[M, K] * op(B)[K, N] + beta * C.
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

namespace temper::actors {

namespace {

float beta(Accumulate accumulate) {
  return accumulate == Accumulate::Yes ? 1.0f : 0.0f;
}

}  // namespace

void matmul_nt(const float* x,
               const float* w,
               float* y,
               std::int64_t rows,
               std::int64_t in,
               std::int64_t out,
               Accumulate accumulate) {
  const int status =
      dnnl_sgemm('N', 'T', rows, out, in, 1.0f, x, in, w, in, beta(accumulate), y, out);
  TEMPER_CHECK(status == 0, "oneDNN refused a matrix product");
}

void matmul_nn(const float* dy,
               const float* w,
               float* dx,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in) {
  const int status = dnnl_sgemm('N', 'N', rows, in, out, 1.0f, dy, out, w, in, 0.0f, dx, in);
  TEMPER_CHECK(status == 0, "oneDNN refused a matrix product");
}

void matmul_tn(const float* dy,
               const float* x,
               float* dw,
               std::int64_t rows,
               std::int64_t out,
               std::int64_t in,
               Accumulate accumulate) {
  const int status =
      dnnl_sgemm('T', 'N', out, in, rows, 1.0f, dy, out, x, in, beta(accumulate), dw, in);
  TEMPER_CHECK(status == 0, "oneDNN refused a matrix product");
}

}  // namespace temper::actors
