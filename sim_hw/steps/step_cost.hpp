// The operators of a step, each with its count and its cost. The visitors in steps.hpp pass
// operators to a sink: SumSink adds them up, ListSink keeps them for `--explain`.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

enum class Op {
  QkvProjection,
  QueryDown,
  QueryUp,
  KeyValueDown,
  KeyValueUp,
  OutputProjection,
  GateUp,
  Down,
  Router,
  SharedExperts,
  Head,
  Attention,
  Experts,
  Elementwise,
  Sampling,
  LogSoftmax,
  HeadGradient,
  Optimizer,
  TensorParallel,
  Dispatch,
  Combine,
  Adapters,
  Other,
};
inline constexpr std::size_t kOps = static_cast<std::size_t>(Op::Other) + 1;

std::string_view op_name(Op op);

enum class Pass { Forward, Recompute, Backward };
std::string_view pass_name(Pass pass);

/// Sizes for the explanation: m, n, k of a GEMM, else the sizes of the operator's equation.
struct OpSizes {
  double a = 0;
  double b = 0;
  double c = 0;
};

struct OpTerm {
  Op op = Op::Other;
  Pass pass = Pass::Forward;
  double count = 1;
  double seconds = 0;  ///< Per occurrence.
  OpSizes sizes;
};

struct SumSink {
  double seconds = 0;
  void operator()(Op, Pass, double count, double each, OpSizes) { seconds += count * each; }
};

struct ListSink {
  std::vector<OpTerm> terms;
  void operator()(Op op, Pass pass, double count, double each, OpSizes sizes) {
    terms.push_back({op, pass, count, each, sizes});
  }
};

}  // namespace temper::sim_hw
