// Shell completion and the manual page, generated from the commands and flags.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace temper::cli {

/// `temper completion bash|zsh|fish`.
void add_completion(CLI::App& app);
/// `temper man`: the manual page in roff.
void add_man_page(CLI::App& app);

}  // namespace temper::cli
