// What a shell and `man` are told of the program, made from its own commands and flags.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace temper::cli {

/// `temper completion bash|zsh|fish`.
void add_completion(CLI::App& app);
/// `temper man`: the page for `man`.
void add_man_page(CLI::App& app);

}  // namespace temper::cli
