// `temper plan`, with the shipped hardware descriptions.
#include "cli/study/plan_command.hpp"

#include "core/json_document.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace temper::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome plan_with(const PlanOptions& options) {
  std::ostringstream out, err;
  const int code = run_plan(options, out, err);
  return {code, out.str(), err.str()};
}

Outcome plan(std::vector<std::string> words) {
  PlanOptions options;
  options.words = std::move(words);
  return plan_with(options);
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::vector<std::string> kTraining{"task=train",
                                         "model=pangu-ultra-moe-718b",
                                         "hardware=ascend-910b",
                                         "cards=6144",
                                         "batch=1536",
                                         "seq=8192"};
const std::vector<std::string> kRollout{"task=rollout",
                                        "model=qwen3-30b-a3b",
                                        "hardware=cm384",
                                        "cards=8",
                                        "prompt=512",
                                        "response=1000"};

Outcome emitted(std::vector<std::string> words, study::EmitTarget engine) {
  PlanOptions options;
  options.words = std::move(words);
  options.emit = engine;
  return plan_with(options);
}

/// Each of `parts`, and the report is not there.
void expect_flags(const Outcome& outcome, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& part : parts)
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  EXPECT_EQ(outcome.out.find("accuracy: "), std::string::npos);
  EXPECT_NE(outcome.err.find("not measured on"), std::string::npos) << outcome.err;
}

// One engine of 8 devices: two replicas of tp 4, the experts over all 8.
const std::vector<std::string> kOneEngine{"task=rollout",
                                          "model=qwen3-30b-a3b",
                                          "hardware=nvidia-h200",
                                          "cards=8",
                                          "prompt=512",
                                          "response=1000",
                                          "tp=4",
                                          "ep=8"};

TEST(PlanEmit, ServersGetTheSameEngineInTheirOwnWords) {
  expect_flags(emitted(kOneEngine, study::EmitTarget::Vllm),
               {"# rollout of Qwen3-30B-A3B: 1 engine of 8 devices",
                "vllm serve \"$MODEL\" \\\n",
                "--tensor-parallel-size 4 ",
                "--data-parallel-size 2 ",
                "--enable-expert-parallel ",
                "--max-num-seqs ",
                "--kv-cache-memory-bytes "});
  // SGLang counts all devices as tensor parallel, replicas as parts of them.
  expect_flags(emitted(kOneEngine, study::EmitTarget::Sglang),
               {"python -m sglang.launch_server",
                "--tp-size 8 ",
                "--dp-size 2 ",
                "--enable-dp-attention ",
                "--ep-size 8 "});
  expect_flags(emitted(kOneEngine, study::EmitTarget::Verl),
               {"actor_rollout_ref.rollout.tensor_model_parallel_size=4\n",
                "actor_rollout_ref.rollout.data_parallel_size=2\n",
                "actor_rollout_ref.rollout.expert_parallel_size=8\n"});
}

TEST(PlanEmit, TrainersGetTheLayoutAndTheStagesThatAreUneven) {
  // 48 layers over 5 stages: 10, 10, 10, 10 and 8.
  const std::vector<std::string> words{"task=train",
                                       "model=qwen3-30b-a3b",
                                       "hardware=nvidia-h200",
                                       "cards=40",
                                       "batch=64",
                                       "seq=4096",
                                       "tp=2",
                                       "pp=5",
                                       "vpp=1",
                                       "ep=4",
                                       "cp=1"};
  expect_flags(emitted(words, study::EmitTarget::Megatron),
               {"--tensor-model-parallel-size 2 ",
                "--pipeline-model-parallel-size 5 ",
                "--decoder-last-pipeline-num-layers 8 ",
                "--expert-model-parallel-size 4 ",
                "# layers of the stages: 10, 10, 10, 10, 8\n",
                "--seq-length 4096 ",
                "--global-batch-size 64"});
  expect_flags(emitted(words, study::EmitTarget::Verl),
               {"actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=5\n",
                "num_layers_in_last_pipeline_stage=8\n"});
}

TEST(PlanEmit, APipelineGivesVerlBothSides) {
  expect_flags(emitted({std::string(TEMPER_SOURCE_DIR) + "/configs/a3_64_qwen3_235b_32k.yaml"},
                       study::EmitTarget::Verl),
               {"data.train_batch_size=128\n",
                "actor_rollout_ref.rollout.n=16\n",
                "data.max_prompt_length=133\n",
                "data.max_response_length=34816\n",
                "actor_rollout_ref.actor.strategy=megatron\n",
                "trainer.n_gpus_per_node=16\n"});
}

TEST(PlanEmit, AnEngineWithoutWordsForASideIsAnError) {
  EXPECT_EQ(emitted(kOneEngine, study::EmitTarget::Megatron).code, 2);
  EXPECT_NE(emitted(kTraining, study::EmitTarget::Vllm).err.find("expected megatron"),
            std::string::npos);
}

TEST(PlanCommand, PrintsThreePlansTheirTermsAndTheirAccuracy) {
  const Outcome outcome = plan(kTraining);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"| 1 ",
                           "| 2 ",
                           "| 3 ",
                           "expert-parallel communication",
                           "pipeline bubble",
                           "whole step",
                           "activations",
                           "2 against 1: +",
                           "loses by",
                           "accuracy: no run of this kind was measured on ascend-910b",
                           "memory of the fullest device, GB"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  EXPECT_EQ(plan(kTraining).out, outcome.out) << "the same question has the same answer";
}

TEST(PlanCommand, PutsALayoutBesideTheBestTermByTerm) {
  PlanOptions options;
  options.words = kTraining;
  options.words.push_back("compare=tp8,pp16,vpp2,ep32,cp1");
  options.json = true;
  const Outcome outcome = plan_with(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = parse_json_or_throw(outcome.out);
  ASSERT_EQ(json["plans"].size(), 4U);
  const auto& yours = json["plans"][3];
  EXPECT_EQ(yours["name"], "yours");
  EXPECT_EQ(yours["tp"], 8);
  EXPECT_EQ(yours["vpp"], 2);
  for (const auto& each : json["plans"]) {
    double sum = 0;
    for (const auto& term : each["time"])
      sum += term["value"].get<double>();
    EXPECT_NEAR(sum, each["seconds"].get<double>(), 1e-9 * sum);
    EXPECT_GE(each["seconds"], json["plans"][0]["seconds"]);
  }
  EXPECT_GT(json["front"].size(), 5U);
}

TEST(PlanCommand, PlansRollouts) {
  const Outcome outcome = plan(kRollout);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"slots per replica", "device time per token", "KV cache", "tokens/s"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
}

TEST(PlanCommand, WritesAPlotAndAPipelineThatCheckAccepts) {
  for (const auto& words : {kRollout,
                            std::vector<std::string>{"task=train",
                                                     "model=qwen3-30b-a3b",
                                                     "hardware=cm384",
                                                     "cards=8",
                                                     "batch=64",
                                                     "seq=4096",
                                                     "expert_tp=1"}}) {
    PlanOptions options;
    options.words = words;
    options.svg = test::temporary_file("plan.svg");
    options.out = test::temporary_file("plan.yaml");
    const Outcome outcome = plan_with(options);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(contents(options.svg).rfind("<svg", 0), 0U);
    const auto config = orchestrator::load_config(options.out);
    EXPECT_TRUE(config) << config.error().context;
    EXPECT_EQ(contents(options.out).rfind("# From `temper plan task=", 0), 0U);
  }
}

TEST(PlanCommand, PlansBothSidesOfAPipeline) {
  PlanOptions options;
  options.words = {std::string(TEMPER_SOURCE_DIR) + "/configs/cm384_pangu.yaml"};
  options.out = test::temporary_file("planned.yaml");
  const Outcome outcome = plan_with(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("configured against 1: +"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("| rollout "), std::string::npos);
  EXPECT_TRUE(orchestrator::load_config(options.out));
}

TEST(PlanCommand, PlansAPipelineWhoseOwnLayoutsDoNotFit) {
  PlanOptions options;
  options.words = {std::string(TEMPER_SOURCE_DIR) + "/configs/cm384_pangu.yaml"};
  options.sets = {"simulation.trainer.pp=1", "simulation.trainer.tp=2"};
  const Outcome outcome = plan_with(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("does not fit: "), std::string::npos) << outcome.out;
  options.sets = {"steps=0"};
  EXPECT_NE(plan_with(options).err.find("steps"), std::string::npos);
}

TEST(PlanCommand, ListsTheWordsThatItKnows) {
  PlanOptions options;
  options.list = true;
  const Outcome outcome = plan_with(options);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("max_token_time"), std::string::npos);
  EXPECT_NE(outcome.out.find("expert_imbalance"), std::string::npos);
}

TEST(PlanCommand, SaysWhatIsWrong) {
  const std::string list = "parameters of each task: temper plan --list\n";
  EXPECT_EQ(plan({"task=cook"}).err, "temper: task=cook: expected train, rollout or rl\n" + list);
  EXPECT_NE(plan({"task=rl"}).err.find("`temper tune CONFIG`"), std::string::npos);
  EXPECT_EQ(plan({}).err, "temper: task: missing; expected text\n" + list);
  EXPECT_EQ(plan({"task=train", "model=x"}).err,
            "temper: hardware: missing; expected text\n" + list);
  EXPECT_EQ(plan({"nowhere.yaml"}).code, 2);
  const std::string local = std::string(TEMPER_SOURCE_DIR) + "/configs/quickstart.yaml";
  EXPECT_NE(plan({local}).err.find("expected hardware: simulated, found hardware: local"),
            std::string::npos);
  std::vector<std::string> words = kTraining;
  words.push_back("tp=7");
  EXPECT_EQ(plan(words).err,
            "temper: no layout can run: tp = 7 does not divide 128 heads of "
            "openPangu-Ultra-MoE-718B; nearest: tp = 8\n" +
                list);
}

}  // namespace
}  // namespace temper::cli
