// Chat templates. They are written in Jinja, and models rely on the details of its Python
// implementation (white space, filters, text methods), so that implementation renders them: a
// Python program, embedded from python/src/temper/chat_template.py, that runs once for each task.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace temper::actors {

/// Renders lists of messages, each a JSON array, to texts in the same order. The texts end with an
/// error if rendering stopped there. Error: nothing could be rendered.
using ChatRenderer =
    std::function<Result<std::vector<Result<std::string>>>(std::span<const std::string>)>;

/// The program that renders: reads one list of messages per line, writes `{"ready": true}` and then
/// `{"text": ...}` or `{"error": ...}` for each.
struct ChatProgram {
  std::vector<std::string> command;
  Duration start = std::chrono::seconds(60);  ///< Time limit until it is ready.
  Duration each = std::chrono::seconds(10);   ///< Time limit for one text.
};

/// Longest accepted text, in bytes.
inline constexpr std::size_t kLongestChat = std::size_t{4} << 20;

/// The embedded program, in the default Python interpreter. `folder`: of the model.
ChatProgram chat_program(const std::filesystem::path& folder);

ChatRenderer chat_renderer(ChatProgram program);

}  // namespace temper::actors
