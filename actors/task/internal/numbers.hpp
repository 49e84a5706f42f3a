// Finding the number that a text ends up with.
#pragma once

#include <optional>
#include <string_view>

namespace temper::actors {

/// The number that a response gives as its result: the first one after the last "####" if there is
/// one, else the last number of the text. None: there is no number.
///
/// A number is "12", "-3.5", ".5", "1,234.50" (commas only between groups of three), "1e-3". A sign
/// belongs to it unless a letter, digit or closing bracket stands before ("7-5" is 7 and 5). Values
/// that a double cannot hold are no numbers; whole numbers are exact up to 2^53.
std::optional<double> final_number(std::string_view text);

}  // namespace temper::actors
