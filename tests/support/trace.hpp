// The slices of a trace's tracks of cards, checked: they follow each other without a gap or an
// overlap.
#pragma once

#include "core/json_document.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace temper::test {

/// The end of each track of cards in nanoseconds, by the track's name.
inline std::map<std::string, std::int64_t> check_card_tracks(const nlohmann::json& trace) {
  constexpr int kCards = 2;
  const auto nanoseconds = [](const nlohmann::json& micros) {
    return std::llround(micros.get<double>() * 1e3);
  };
  std::map<int, std::string> names;
  std::map<int, std::int64_t> ends;
  for (const nlohmann::json& e : trace) {
    if (e.at("pid") != kCards)
      continue;
    const int track = e.at("tid");
    if (e.at("name") == "thread_name") {
      names[track] = e.at("args").at("name");
    } else if (e.at("ph") == "X") {
      EXPECT_EQ(nanoseconds(e.at("ts")), ends[track]) << names[track];
      EXPECT_GT(nanoseconds(e.at("dur")), 0) << names[track];
      ends[track] += nanoseconds(e.at("dur"));
    }
  }
  std::map<std::string, std::int64_t> out;
  for (const auto& [track, end] : ends)
    out[names[track]] = end;
  return out;
}

}  // namespace temper::test
