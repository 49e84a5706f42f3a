// The JobSet that `temper launch k8s` writes, against the fields of its published schema that it
// uses: kubernetes-sigs/jobset, config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml, version
// v1alpha2, as of commit 08dfbdf (2026-08-18). A field that is new in the manifest is looked up
// there, and gets a row here. metadata is of the API of Kubernetes itself.
#include "cli/launch/slurm_script.hpp"
#include "core/yaml_tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace temper::cli {
namespace {

enum class Type { Object, List, Text, Whole, Truth, Quantity };

struct Field {
  std::string_view path;
  Type type;
  std::string_view required = "";  ///< Keys that an object must have, each with a blank before it.
  std::string_view allowed = "";   ///< Words that a text may be, each with a blank before it.
};

constexpr std::array kSchema{
    Field{"", Type::Object},
    Field{"apiVersion", Type::Text, "", " jobset.x-k8s.io/v1alpha2"},
    Field{"kind", Type::Text, "", " JobSet"},
    Field{"metadata", Type::Object},
    Field{"metadata.name", Type::Text},
    Field{"spec", Type::Object},
    Field{"spec.failurePolicy", Type::Object},
    Field{"spec.failurePolicy.maxRestarts", Type::Whole},
    Field{"spec.network", Type::Object},
    Field{"spec.network.enableDNSHostnames", Type::Truth},
    Field{"spec.successPolicy", Type::Object, " operator"},
    Field{"spec.successPolicy.operator", Type::Text, "", " All Any"},
    Field{"spec.successPolicy.targetReplicatedJobs", Type::List},
    Field{"spec.successPolicy.targetReplicatedJobs[]", Type::Text},
    Field{"spec.replicatedJobs", Type::List},
    Field{"spec.replicatedJobs[]", Type::Object, " name template"},
    Field{"spec.replicatedJobs[].name", Type::Text},
    Field{"spec.replicatedJobs[].template", Type::Object},
    Field{"spec.replicatedJobs[].template.spec", Type::Object, " template"},
    Field{"JOB.backoffLimit", Type::Whole},
    Field{"JOB.completionMode", Type::Text, "", " NonIndexed Indexed"},
    Field{"JOB.completions", Type::Whole},
    Field{"JOB.parallelism", Type::Whole},
    Field{"JOB.template", Type::Object},
    Field{"JOB.template.spec", Type::Object, " containers"},
    Field{"POD.restartPolicy", Type::Text, "", " Always OnFailure Never"},
    Field{"POD.terminationGracePeriodSeconds", Type::Whole},
    Field{"POD.containers", Type::List},
    Field{"POD.containers[]", Type::Object, " name"},
    Field{"POD.containers[].name", Type::Text},
    Field{"POD.containers[].image", Type::Text},
    Field{"POD.containers[].command", Type::List},
    Field{"POD.containers[].command[]", Type::Text},
    Field{"POD.containers[].resources", Type::Object},
    Field{"POD.containers[].resources.limits", Type::Object},
    Field{"POD.containers[].resources.limits.nvidia.com/gpu", Type::Quantity},
    Field{"POD.containers[].workingDir", Type::Text},
    Field{"POD.containers[].volumeMounts", Type::List},
    Field{"POD.containers[].volumeMounts[]", Type::Object, " mountPath name"},
    Field{"POD.containers[].volumeMounts[].mountPath", Type::Text},
    Field{"POD.containers[].volumeMounts[].name", Type::Text},
    Field{"POD.volumes", Type::List},
    Field{"POD.volumes[]", Type::Object, " name"},
    Field{"POD.volumes[].name", Type::Text},
    Field{"POD.volumes[].configMap", Type::Object},
    Field{"POD.volumes[].configMap.name", Type::Text},
    Field{"POD.volumes[].persistentVolumeClaim", Type::Object, " claimName"},
    Field{"POD.volumes[].persistentVolumeClaim.claimName", Type::Text},
};

constexpr std::string_view kJob = "spec.replicatedJobs[].template.spec.";
constexpr std::string_view kPod = "spec.replicatedJobs[].template.spec.template.spec.";

/// As the table has it.
std::string shortened(std::string path) {
  if (path.starts_with(kPod))
    return "POD." + path.substr(kPod.size());
  if (path.starts_with(kJob))
    return "JOB." + path.substr(kJob.size());
  return path;
}

bool is_whole(const YamlNode& node) {
  return !node.quoted && !node.text.empty() &&
         std::ranges::all_of(node.text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is(const YamlNode& node, Type type) {
  using Kind = YamlNode::Kind;
  switch (type) {
    case Type::Object:
      return node.kind == Kind::Map;
    case Type::List:
      return node.kind == Kind::List;
    case Type::Whole:
    case Type::Quantity:
      return node.kind == Kind::Scalar && is_whole(node);
    case Type::Truth:
      return node.kind == Kind::Scalar && (node.text == "true" || node.text == "false");
    case Type::Text:
      return node.kind == Kind::Scalar && (node.quoted || !is_whole(node));
  }
  return false;
}

bool names(std::string_view list, const std::string& word) {
  return fmt::format("{} ", list).find(fmt::format(" {} ", word)) != std::string::npos;
}

void expect_valid(const YamlNode& node, const std::string& path) {
  const auto field = std::ranges::find(kSchema, shortened(path), &Field::path);
  ASSERT_NE(field, kSchema.end()) << path << " is not in the table";
  EXPECT_TRUE(is(node, field->type)) << path << " is of another type: " << node.text;
  if (!field->allowed.empty()) {
    EXPECT_TRUE(names(field->allowed, node.text)) << path << ": " << node.text;
  }
  std::string keys;
  for (const YamlNode::Entry& entry : node.entries) {
    keys += " " + entry.key;
    const bool in_list = node.kind == YamlNode::Kind::List;
    expect_valid(entry.node,
                 in_list        ? path + "[]"
                 : path.empty() ? entry.key
                                : path + "." + entry.key);
  }
  for (std::size_t begin = 0; begin < field->required.size();) {
    const std::size_t end = std::min(field->required.find(' ', begin + 1), field->required.size());
    const std::string key(field->required.substr(begin + 1, end - begin - 1));
    EXPECT_TRUE(names(keys, key)) << path << " has no " << key;
    begin = end;
  }
}

TEST(JobSet, IsOneByItsPublishedSchema) {
  for (const int gpus : {0, 8}) {
    const LaunchPlan plan{.command = "temper launch",
                          .name = "a",
                          .config = "a.yaml",
                          .run_dir = "/shared/a",
                          .nodes = 4,
                          .gpus = gpus,
                          .image = "registry.example/temper:1",
                          .claim = "shared"};
    const YamlDocument manifest("jobset.yaml", jobset_manifest(plan), {});
    ASSERT_TRUE(manifest.issues().empty()) << manifest.issues().front().message;
    expect_valid(manifest.root(), "");
  }
}

const YamlNode* at(const YamlNode& node, std::string_view key) {
  const auto found = std::ranges::find(node.entries, key, &YamlNode::Entry::key);
  return found == node.entries.end() ? nullptr : &found->node;
}

TEST(ConfigMap, GivesEachFileBackAsItWas) {
  LaunchPlan plan{.command = "temper launch", .name = "a"};
  for (const char* text : {"steps: 3\n",
                           "# a comment\n\nsteps: 3\n",
                           "  first line is indented\nsecond is not\n",
                           "{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n",
                           "a: 'it''s'\n",
                           "tab\there\n",
                           "key: |\n  block\n\n  of lines\n",
                           "- &not 'an' *anchor* #here\n",
                           "trailing spaces   \nend\n",
                           "\u00e9\u4e2d\n",
                           "---\n...\n"})
    plan.packed.push_back({fmt::format("file-{}", plan.packed.size()), text});
  const YamlDocument manifest("map.yaml", config_map_manifest(plan), {});
  ASSERT_TRUE(manifest.issues().empty()) << manifest.issues().front().message;
  EXPECT_EQ(at(manifest.root(), "apiVersion")->text, "v1");
  EXPECT_EQ(at(manifest.root(), "kind")->text, "ConfigMap");
  EXPECT_EQ(at(*at(manifest.root(), "metadata"), "name")->text, "a-config");
  for (const PackedFile& file : plan.packed)
    EXPECT_EQ(at(*at(manifest.root(), "data"), file.name)->text, file.text) << file.name;
}

}  // namespace
}  // namespace temper::cli
