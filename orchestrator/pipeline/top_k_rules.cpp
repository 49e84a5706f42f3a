#include "orchestrator/pipeline/top_k_rules.hpp"

#include "actors/task/tokenizer.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {

void check_top_k(const PipelineConfig& c, const trainer::Algorithm& a, Rules& rules) {
  if (a.distillation_top_k == 0)
    return;
  const std::string key = "algorithm.distillation_top_k";
  rules.require(a.distillation > 0,
                {key, "algorithm.distillation", "algorithm.name"},
                fmt::format("must be 0 unless algorithm.distillation, the weight of its loss, is "
                            "above 0; found {}",
                            a.distillation_top_k));
  const std::int32_t vocabulary =
      c.model.vocabulary.value_or(actors::Tokenizer::for_task(c.task).vocabulary());
  rules.require(a.distillation_top_k <= vocabulary,
                {key, "model.vocabulary"},
                fmt::format("must be at most the {} tokens of the vocabulary, found {}",
                            vocabulary,
                            a.distillation_top_k));
  for (const Teacher& teacher : teachers_by_engine(c)) {
    const actors::EngineKind kind = teacher.engine.kind;
    rules.require(
        c.hardware == HardwareKind::Local && !actors::is_server(kind) &&
            (kind != actors::EngineKind::Native || c.policy == actors::PolicyKind::Torch),
        {key, teacher.engine_section + ".engine.kind", "hardware", "policy"},
        fmt::format("requires `hardware: local` and a reference that returns its most likely "
                    "tokens: `native` with `policy: torch`, `python` or `command`; found `{}` with "
                    "`policy: {}` and `hardware: {}`",
                    name_of(kind),
                    name_of(c.policy),
                    name_of(c.hardware)));
  }
}

}  // namespace temper::orchestrator
