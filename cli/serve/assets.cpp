#include "cli/serve/assets.hpp"

// The assembler embeds the files (.incbin). CMake passes the folder and rebuilds this file when
// they change.
#define TEMPER_ASSET(name, file)               \
  asm(".section .rodata\n"                     \
      ".global temper_asset_" #name            \
      "\n"                                     \
      "temper_asset_" #name                    \
      ":\n"                                    \
      ".incbin \"" TEMPER_WEB_DIST "/" file    \
      "\"\n"                                   \
      ".global temper_asset_" #name            \
      "_end\n"                                 \
      "temper_asset_" #name                    \
      "_end:\n"                                \
      ".byte 0\n"                              \
      ".previous\n");                          \
  extern "C" const char temper_asset_##name[]; \
  extern "C" const char temper_asset_##name##_end[];

TEMPER_ASSET(page, "index.html")
TEMPER_ASSET(script, "page.js")
TEMPER_ASSET(style, "page.css")

namespace temper::cli::assets {

std::string_view page() {
  return {temper_asset_page, temper_asset_page_end};
}
std::string_view script() {
  return {temper_asset_script, temper_asset_script_end};
}
std::string_view style() {
  return {temper_asset_style, temper_asset_style_end};
}

}  // namespace temper::cli::assets
