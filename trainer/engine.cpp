#include "trainer/engine.hpp"

namespace temper::trainer {

Result<std::string> Engine::weights() const {
  std::string image;
  TEMPER_TRY_STATUS(publish([&](std::span<const std::byte> part) -> Status {
    image.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  }));
  return image;
}

}  // namespace temper::trainer
