#include "actors/task/internal/problem_columns.hpp"

#include "actors/task/internal/text.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::actors {

bool set_source(Problem& problem, const std::string& source) {
  if (source.empty())
    return true;
  auto columns = problem.columns.empty() ? nlohmann::json::object()
                                         : nlohmann::json::parse(problem.columns, nullptr, false);
  if (!columns.is_object() || columns.contains(kSourceColumn))
    return false;
  columns[kSourceColumn] = source;
  problem.columns = columns.dump();
  problem.source = source;
  return true;
}

Result<std::uint8_t> teacher_in(const Problem& problem,
                                const std::string& column,
                                const std::vector<std::string>& teachers) {
  const auto columns = nlohmann::json::parse(problem.columns, nullptr, false);
  if (!columns.is_object() || !columns.contains(column)) {
    return invalid_input(fmt::format("the column `{}` (task.teacher_column) is missing", column));
  }
  const nlohmann::json& found = columns[column];
  const auto it = found.is_string()
                      ? std::ranges::find(teachers, found.get_ref<const std::string&>())
                      : teachers.end();
  if (it == teachers.end()) {
    return invalid_input(fmt::format("`{}`: expected one of `{}` (reference.teachers), found {}",
                                     column,
                                     fmt::join(teachers, "`, `"),
                                     excerpt(found.dump(), 80)));
  }
  return static_cast<std::uint8_t>(it - teachers.begin());
}

}  // namespace temper::actors
