#include "actors/runtime/place.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace temper::actors {
namespace {

struct Variable {
  const char* name;
  const char* beside = nullptr;  ///< Variable that the launcher also sets; other programs may set
                                 ///< `name` alone.
};
constexpr Variable kRanks[] = {{"RANK", "WORLD_SIZE"},
                               {"OMPI_COMM_WORLD_RANK"},
                               {"PMIX_RANK"},
                               {"PMI_RANK"},
                               {"SLURM_PROCID"},
                               {"JOB_COMPLETION_INDEX"}};

}  // namespace

Result<std::optional<std::int64_t>> launched_rank(const Environment& environment) {
  for (const Variable& variable : kRanks) {
    const char* const value = environment(variable.name);
    if (value == nullptr || (variable.beside != nullptr && environment(variable.beside) == nullptr))
      continue;
    const std::string_view text = value;
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc() || end != text.data() + text.size() || rank < 0) {
      return invalid_input(fmt::format(
          "{}={} in the environment: expected a rank >= 0; pass --role, --slot or --rank",
          variable.name,
          text));
    }
    return std::optional(rank);
  }
  return std::optional<std::int64_t>();
}

Result<std::string> place_of(const std::string& slot,
                             const std::string& role,
                             std::optional<std::int64_t> rank,
                             const Environment& environment) {
  if (!slot.empty())
    return slot;
  if (!role.empty())
    return role;
  if (!rank) {
    TEMPER_TRY(rank, launched_rank(environment));
  }
  return rank ? fmt::format("#{}", *rank) : std::string("any");
}

}  // namespace temper::actors
