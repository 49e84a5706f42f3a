// The workflow of the forge runs each part of `.ci/run`, and the builds without libtorch and
// without the laboratory.
#include "core/files.hpp"
#include "core/yaml_tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace temper::test {
namespace {

const YamlNode* child(const YamlNode* node, std::string_view key) {
  if (node == nullptr)
    return nullptr;
  const auto found = std::ranges::find(node->entries, key, &YamlNode::Entry::key);
  return found == node->entries.end() ? nullptr : &found->node;
}

/// The parts that `.ci/run` runs without arguments.
std::vector<std::string> parts_of_ci_run() {
  const std::string script = read_file(std::string(TEMPER_SOURCE_DIR) + "/.ci/run").value();
  const std::string begin = "|| parts=(";
  const std::size_t from = script.find(begin);
  if (from == std::string::npos)
    return {};
  const std::size_t start = from + begin.size();
  std::istringstream words(script.substr(start, script.find(')', start) - start));
  std::vector<std::string> parts;
  for (std::string word; words >> word;)
    parts.push_back(word);
  return parts;
}

TEST(Workflow, RunsEachPartOfCiRunAndTheSmallerBuilds) {
  const std::string path = std::string(TEMPER_SOURCE_DIR) + "/.github/workflows/test.yml";
  const YamlDocument workflow(path, read_file(path).value(), {});
  const YamlNode* job = child(child(&workflow.root(), "jobs"), "part");
  ASSERT_NE(job, nullptr) << path << ": no job `part`";
  const YamlNode* matrix = child(child(child(job, "strategy"), "matrix"), "part");
  ASSERT_NE(matrix, nullptr) << path << ": jobs.part.strategy.matrix.part is missing";
  std::vector<std::string> jobs;
  for (const YamlNode::Entry& entry : matrix->entries)
    jobs.push_back(entry.node.text);
  std::vector<std::string> expected = parts_of_ci_run();
  ASSERT_FALSE(expected.empty()) << ".ci/run: the list of parts was not found";
  expected.insert(expected.end(), {"notorch", "nolab", "commands", "change-cost"});
  EXPECT_EQ(jobs, expected);

  const YamlNode* steps = child(job, "steps");
  ASSERT_NE(steps, nullptr);
  EXPECT_TRUE(std::ranges::any_of(
      steps->entries,
      [](const YamlNode::Entry& step) {
        const YamlNode* run = child(&step.node, "run");
        return run != nullptr && run->text.find(".ci/run ${{ matrix.part }}") != std::string::npos;
      }))
      << path << ": no step runs .ci/run with the part of the matrix";
}

}  // namespace
}  // namespace temper::test
