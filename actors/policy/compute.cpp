#include "actors/policy/compute.hpp"

#include "actors/policy/float_buffer.hpp"
#include "actors/policy/internal/matmul.hpp"
#include "core/clock.hpp"

#include <algorithm>
#include <vector>

namespace temper::actors {

Flops forward_flops(const Layout& layout, double keys) {
  double flops = 0;
  for (const TensorSpec& tensor : layout.tensors()) {
    const bool only_looked_up =
        &tensor == layout.tensors().data() && !layout.model().tie_embeddings;
    if (tensor.shape.size() == 2 && !only_looked_up)
      flops += 2.0 * static_cast<double>(tensor.elements());
  }
  return Flops(flops + 4.0 * layout.model().layers * layout.attention_width() * keys);
}

FlopsPerSecond measure_gemm_rate(std::int32_t repeats, ComputeType type) {
  constexpr std::int64_t kSize = 1024;
  const std::vector<Bfloat16> rounded(kSize * kSize, to_bfloat16(0.5f));
  FloatBuffer x(kSize * kSize);
  FloatBuffer w(kSize * kSize);
  FloatBuffer y(kSize * kSize);
  std::fill_n(x.data(), x.size(), 1.0f);
  std::fill_n(w.data(), w.size(), 0.5f);
  const RealClock clock;
  double best = 0;
  for (std::int32_t i = 0; i < repeats; ++i) {
    const Time start = clock.now();
    if (type == ComputeType::Float32)
      matmul_nt(x.data(), w.data(), y.data(), kSize, kSize, kSize);
    else
      matmul_nt(rounded.data(), rounded.data(), y.data(), kSize, kSize, kSize);
    best = std::max(best, 2.0 * kSize * kSize * kSize / seconds(clock.now() - start));
  }
  return FlopsPerSecond(best);
}

}  // namespace temper::actors
