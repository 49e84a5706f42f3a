#include "actors/task/internal/problem_columns.hpp"

#include "core/json_document.hpp"

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

}  // namespace temper::actors
