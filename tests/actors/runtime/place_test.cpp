// The place that a worker requests, from its command line or its launcher.
#include "actors/runtime/place.hpp"

#include <gtest/gtest.h>

#include <map>

namespace temper::actors {
namespace {

using Variables = std::map<std::string, std::string>;

std::string place(const Variables& variables,
                  const std::string& slot = "",
                  const std::string& role = "",
                  std::optional<std::int64_t> rank = {}) {
  const auto found = place_of(slot, role, rank, [&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
  return found ? *found : "refused: " + found.error().context;
}

TEST(Place, CommandLineOverridesTheLauncher) {
  const Variables slurm{{"SLURM_PROCID", "3"}};
  EXPECT_EQ(place(slurm, "rollout-7"), "rollout-7");
  EXPECT_EQ(place(slurm, "", "reward"), "reward");
  EXPECT_EQ(place(slurm, "", "", 2), "#2");
}

TEST(Place, UsesTheRankOfTheLauncher) {
  EXPECT_EQ(place({{"SLURM_PROCID", "3"}}), "#3");
  EXPECT_EQ(place({{"RANK", "4"}, {"WORLD_SIZE", "8"}}), "#4");
  EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "5"}}), "#5");
  EXPECT_EQ(place({{"PMI_RANK", "6"}}), "#6");
  EXPECT_EQ(place({{"PMIX_RANK", "7"}}), "#7");
  EXPECT_EQ(place({{"JOB_COMPLETION_INDEX", "0"}}), "#0");
}

TEST(Place, UsesTheInnermostLauncher) {
  EXPECT_EQ(place({{"SLURM_PROCID", "0"}, {"RANK", "9"}, {"WORLD_SIZE", "16"}}), "#9");
  EXPECT_EQ(place({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "2"}}), "#2");
}

TEST(Place, IgnoresRankWithoutWorldSize) {
  EXPECT_EQ(place({{"RANK", "9"}}), "any") << "torchrun sets WORLD_SIZE too";
}

TEST(Place, IsAnyWithoutALauncher) {
  EXPECT_EQ(place({}), "any");
}

TEST(Place, NamesAnInvalidRank) {
  EXPECT_EQ(place({{"SLURM_PROCID", "three"}}),
            "refused: SLURM_PROCID=three in the environment: expected a rank >= 0; pass --role, "
            "--slot or --rank");
  EXPECT_TRUE(place({{"PMI_RANK", "-1"}}).starts_with("refused: PMI_RANK=-1"));
}

}  // namespace
}  // namespace temper::actors
