#include "orchestrator/model_comparison/chat_texts.hpp"

#include "actors/task/prompts.hpp"
#include "core/files.hpp"
#include "core/json.hpp"

namespace temper::orchestrator {
namespace {

/// A row of a task's file.
struct ChatRow {
  Chat prompt;
  std::string answer;
};

void describe(auto& v, ChatRow& r) {
  v.field(1, "prompt", r.prompt);
  v.field(2, "answer", r.answer);
}

Result<std::string> render(const Chat& chat,
                           const std::filesystem::path& model,
                           const std::filesystem::path& file) {
  TEMPER_TRY_STATUS(write_file_atomically(file, to_json(ChatRow{chat, "none"}) + "\n"));
  actors::TaskConfig task;
  task.kind = actors::TaskKind::Jsonl;
  task.path = file.string();
  task.held_out = 0;
  task.prompt_template = actors::TemplateKind::Chat;
  TEMPER_TRY(const auto source,
             actors::make_prompt_source(task, 1, {actors::AnswerRule::Any, model}));
  return source->train(0).prompt;
}

}  // namespace

std::vector<RenderedChat> render_chats(std::span<const Chat> chats,
                                       const std::filesystem::path& model,
                                       const std::filesystem::path& folder) {
  std::vector<RenderedChat> out;
  for (const Chat& chat : chats) {
    const auto text = render(chat, model, folder / "chat.jsonl");
    if (text)
      out.push_back({*text, ""});
    else
      out.push_back({"", text.error().context});
  }
  return out;
}

}  // namespace temper::orchestrator
