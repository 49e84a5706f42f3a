#include "sim_hw/queries/queries.hpp"

#include <iostream>

int main() {
  temper::sim_hw::Catalog catalog(TEMPER_CONFIGS_FOLDER);
  const auto words = temper::sim_hw::Params::parse("m=4096;n=4096;k=4096");
  const auto cost = temper::sim_hw::cost_of({catalog, "."}, {"nvidia-h200", 1, "gemm", *words});
  if (!cost) {
    std::cerr << cost.error().context << "\n";
    return 1;
  }
  const float us = cost->find("time")->value * 1e6;  // With -Wconversion -Werror: no program.
  std::cout << "gemm " << us << " us\n";
}
