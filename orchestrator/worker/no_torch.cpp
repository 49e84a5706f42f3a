#include "orchestrator/run/processes/supervisor.hpp"
#include "orchestrator/worker/logits_command.hpp"
#include "orchestrator/worker/pretrain_command.hpp"
#include "orchestrator/worker/roles/engines.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace temper::orchestrator {
namespace {

Error unsupported() {
  return {ErrorCode::Unsupported,
          "this build has no torch engines; configure with -DTEMPER_TORCH=ON, or use "
          "`policy: synthetic`"};
}

}  // namespace

void use_threads(std::size_t) {}

Result<std::unique_ptr<rollout::Engine>> make_torch_rollout(const actors::RoleConfig&,
                                                            const rollout::RolloutSettings&) {
  return unsupported();
}

Result<std::unique_ptr<trainer::Engine>> make_torch_trainer(const actors::RoleConfig&,
                                                            const trainer::TrainerSettings&) {
  return unsupported();
}

Result<std::unique_ptr<actors::ReferenceEngine>> make_torch_reference(
    const actors::RoleConfig&, const trainer::TrainerSettings&) {
  return unsupported();
}

int run_pretrain(const PretrainArguments&) {
  fmt::print(stderr, "temper-worker: {}\n", unsupported().context);
  return 1;
}

int run_logits(const LogitsArguments&) {
  fmt::print(stderr,
             "the comparison needs a build with libtorch: configure with -DTEMPER_TORCH=ON\n");
  return kPermanentExit;
}

}  // namespace temper::orchestrator
