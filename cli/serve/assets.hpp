// The built web page (web/dist), embedded in the program.
#pragma once

#include <string_view>

namespace temper::cli::assets {

std::string_view page();
std::string_view script();
std::string_view style();

}  // namespace temper::cli::assets
