// Finds the final number of a text.
#pragma once

#include <optional>
#include <string_view>

namespace temper::actors {

/// The result of a response: the first number after the last "####" if there is one, otherwise the
/// last number of the text. Empty if there is no number.
///
/// Examples of numbers: "12", "-3.5", ".5", "1,234.50" (commas only between groups of three),
/// "1e-3". A sign belongs to the number unless a letter, digit or closing bracket precedes it
/// ("7-5" is 7 and 5). Values out of the range of a double are ignored; integers are exact up to
/// 2^53.
std::optional<double> final_number(std::string_view text);

}  // namespace temper::actors
