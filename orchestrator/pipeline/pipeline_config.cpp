#include "orchestrator/pipeline/pipeline_config.hpp"

#include "core/yaml.hpp"

namespace temper::orchestrator {

PipelineConfig::PipelineConfig() = default;
PipelineConfig::PipelineConfig(const PipelineConfig& other) = default;
PipelineConfig::PipelineConfig(PipelineConfig&& other) noexcept = default;
PipelineConfig& PipelineConfig::operator=(const PipelineConfig& other) = default;
PipelineConfig& PipelineConfig::operator=(PipelineConfig&& other) noexcept = default;
PipelineConfig::~PipelineConfig() = default;

template void describe(YamlReader& v, PipelineConfig& c);
template void describe(YamlWriter& v, PipelineConfig& c);

}  // namespace temper::orchestrator
