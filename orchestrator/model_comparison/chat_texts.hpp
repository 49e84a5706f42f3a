// Renders chats as a run with `task.template: chat` does.
#pragma once

#include "orchestrator/model_comparison/transformers_answer.hpp"

#include <filesystem>
#include <span>
#include <vector>

namespace temper::orchestrator {

/// The prompt that a run makes of each chat with the template of the model folder, or why it is
/// rejected. Writes temporary files to `folder`.
std::vector<RenderedChat> render_chats(std::span<const Chat> chats,
                                       const std::filesystem::path& model,
                                       const std::filesystem::path& folder);

}  // namespace temper::orchestrator
