#include "core/statistics.hpp"
#include "sim_hw/validation/coverage.hpp"
#include "sim_hw/validation/provenance.hpp"
#include "sim_hw/validation/report.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::sim_hw {
namespace {

// A kind that returns its parameter, so that errors are known.
Result<Cost> cost_of_value(const CostContext&, const Request& request) {
  TEMPER_TRY(const double value, request.params.number("value"));
  return Cost{{Metric{"time", "s", value, {}}, Metric{"memory", "B", 100 * value, {}}}};
}
constexpr Kind kKinds[] = {{"echo", "Its parameter.", "value", cost_of_value}};

Result<std::vector<Row>> rows_of(std::string_view csv) {
  TEMPER_TRY(const CsvTable table, parse_csv("test.csv", csv));
  return to_rows(table, "folder/test.csv");
}

std::vector<Comparison> compared(std::string_view csv) {
  Catalog catalog{"."};
  const auto rows = rows_of(csv);
  EXPECT_TRUE(rows) << rows.error().context;
  return compare(catalog, *rows, kKinds);
}

TEST(Csv, ReadsQuotedFieldsAndNamesBadLines) {
  const auto table = parse_csv("a.csv", "x,y\n1,\"two, \"\"2\"\"\"\n\n3,4\r\n");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0][1], "two, \"2\"");
  EXPECT_EQ(table->rows[1][1], "4");
  EXPECT_EQ(table->lines[1], 4);
  EXPECT_EQ(parse_csv("a.csv", "x,y\n1\n").error().context, "a.csv:2: expected 2 columns, found 1");
  EXPECT_EQ(csv_word("a,\"b\""), "\"a,\"\"b\"\"\"");
}

TEST(Measurements, ReadRowsWithAndWithoutId) {
  const auto rows = rows_of(
      "id,hardware,cards,kind,params,metric,unit,value,source\n"
      "A1,h,2,echo,value=3,time,ms,4.5,a paper\n"
      ",h,1,echo,value=3,time,ms,4.5,\n");
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[0].id, "A1");
  EXPECT_EQ((*rows)[0].cards, 2);
  EXPECT_EQ((*rows)[0].value, 4.5);
  EXPECT_EQ((*rows)[0].source, "a paper");
  EXPECT_EQ((*rows)[1].id, "test.csv:3");
  EXPECT_EQ((*rows)[1].folder, "folder");
  const auto again = rows_of(to_csv(*rows));
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[0].params, "value=3");
}

TEST(Measurements, NameTheLineAndWhatWasExpected) {
  EXPECT_EQ(
      rows_of("hardware,cards,kind,params,metric,unit,value\nh,1,echo,,time,s,x\n").error().context,
      "folder/test.csv:2: value: expected a number, found `x`");
  EXPECT_EQ(rows_of("hardware,cards\nh,1\n").error().context,
            "folder/test.csv: no column `kind`; expected "
            "hardware,cards,kind,params,metric,unit,value");
}

TEST(Measurements, RecognizeSimGridByItsHeader) {
  const auto flat =
      rows_of("algorithm,npus,size_bytes,sim_time_ns,messages\nring_ar,8,1048576,31281,112\n");
  ASSERT_TRUE(flat);
  EXPECT_EQ((*flat)[0].kind, "flat_ring_ar");
  EXPECT_EQ((*flat)[0].params, "npus=8;size_bytes=1048576");
  EXPECT_EQ((*flat)[0].hardware, "simgrid");
  const auto contended = rows_of(
      "scenario,npus,topology,node_uplink_oversubscription,size_bytes,flows,sim_time_ns,"
      "group0_end_ns,group1_end_ns\nwsync,64,8x8,2,1024,50,857880,0,857880\n");
  ASSERT_TRUE(contended);
  ASSERT_EQ(contended->size(), 2U);  // The scenario has no group 0.
  EXPECT_EQ((*contended)[0].params, "scenario=wsync;npus=64;oversubscription=2;size_bytes=1024");
  EXPECT_EQ((*contended)[1].metric, "group1_end");
}

constexpr std::string_view kFourRows =
    "hardware,cards,kind,params,metric,unit,value\n"
    "h,1,echo,value=1.1,time,s,1\n"     // +10 %
    "h,1,echo,value=1.6,time,s,2\n"     // -20 %
    "g,1,echo,value=3,time,ms,3000\n"   //   0 %
    "h,1,echo,value=1,memory,B,200\n";  // -50 %

TEST(Statistics, AreMeanBiasLargestAndOrder) {
  const auto kinds = by_kind(compared(kFourRows));
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].n, 4);
  EXPECT_NEAR(*kinds[0].mape, (0.1 + 0.2 + 0 + 0.5) / 4, 1e-12);
  EXPECT_NEAR(*kinds[0].bias, (0.1 - 0.2 + 0 - 0.5) / 4, 1e-12);
  EXPECT_NEAR(*kinds[0].max, 0.5, 1e-12);
  EXPECT_NEAR(
      *kinds[0].rank_correlation, 1, 1e-12);  // Of the times; a single memory row has no rank.
  EXPECT_EQ(by_kind_hardware_metric(compared(kFourRows)).size(), 3U);
}

TEST(Statistics, CountARowWithoutPredictionAsFailed) {
  const auto rows = compared(
      "hardware,cards,kind,params,metric,unit,value\n"
      "h,1,echo,valeu=1,time,s,1\n"
      "h,1,echo,value=1,speed,s,1\n"
      "h,1,ecko,value=1,time,s,1\n");
  EXPECT_EQ(rows[0].failure, "echo: value: missing; expected a number");
  EXPECT_EQ(rows[1].failure, "echo: no metric `speed`; there is time, memory");
  EXPECT_EQ(rows[2].failure, "unknown kind `ecko`; did you mean `echo`?");
  const auto kinds = by_kind(rows);
  EXPECT_EQ(kinds[0].failed + kinds[1].failed, 3);
  EXPECT_FALSE(kinds[0].mape);
}

TEST(Bands, SpanEveryCombinationAndNameWhatMatters) {
  const auto rows = compared(
      "hardware,cards,kind,params,metric,unit,value\n"
      "h,1,echo,value=1..5..2,time,s,3\n"
      "h,1,echo,value=1..2,time,s,3\n"
      "h,1,echo,value/other=1/2..3,time,s,3\n");
  ASSERT_TRUE(rows[0].band);
  EXPECT_EQ(rows[0].band->low, 1);
  EXPECT_EQ(rows[0].band->high, 5);
  EXPECT_EQ(rows[0].band->matters, "value");
  EXPECT_TRUE(rows[0].in_band());
  EXPECT_FALSE(rows[1].in_band());
  EXPECT_EQ(rows[2].failure, "value/other=1/2..3: expected 2 values per option, found `3`");
  EXPECT_EQ(by_kind(rows)[0].n, 0);  // Intervals have no error.
}

TEST(UpperBounds, HaveAnErrorOnlyIfExceeded) {
  Comparison row;
  row.row.metric = "tpot_upper_bound";
  row.measured = 50;
  row.predicted = 30;
  EXPECT_EQ(*row.error(), 0);
  row.predicted = 60;
  EXPECT_NEAR(*row.error(), 0.2, 1e-12);
}

TEST(RankCorrelation, IsSpearmansWithSharedRanks) {
  const std::vector<double> up{1, 2, 3, 4};
  EXPECT_NEAR(*rank_correlation(up, std::vector<double>{10, 20, 30, 400}), 1, 1e-12);
  EXPECT_NEAR(*rank_correlation(up, std::vector<double>{4, 3, 2, 1}), -1, 1e-12);
  // Ranks 1 2.5 2.5 4 against 1 2 3 4: cov = 4.5, variances 4.5 and 5, rho = 4.5 / sqrt(22.5).
  EXPECT_NEAR(*rank_correlation(std::vector<double>{1, 2, 2, 3}, up), 4.5 / std::sqrt(22.5), 1e-12);
  EXPECT_FALSE(rank_correlation(std::vector<double>{1, 1}, std::vector<double>{1, 2}));
}

// ---- publications ----

class Publications : public testing::Test {
 protected:
  /// Of one row with these fields; `source` is primary.
  Conversion convert(const std::string& fields, const std::string& source = "a paper [primary]") {
    const auto table =
        parse_csv("p.csv",
                  "id,area,system,hardware,cards,model,conditions,metric,unit,value,source\nX1," +
                      fields + "," + source + "\n");
    EXPECT_TRUE(table) << table.error().context;
    auto conversion = convert_publications(*table, "p.csv", catalog_);
    EXPECT_TRUE(conversion) << conversion.error().context;
    return std::move(*conversion);
  }
  std::string params(const std::string& fields) {
    const Conversion out = convert(fields);
    if (out.rows.empty())
      return "unused: " + out.unused[0].reason;
    return out.rows[0].hardware + " " + out.rows[0].kind + " " + out.rows[0].params + " " +
           out.rows[0].metric;
  }
  std::string reason(const std::string& fields) {
    const Conversion out = convert(fields);
    return out.unused.empty() ? "used" : out.unused[0].reason;
  }
  Catalog catalog_{std::string(TEMPER_SOURCE_DIR) + "/configs"};
};

TEST_F(Publications, OfOperatorsBecomeRows) {
  EXPECT_EQ(
      params("operator,s,NVIDIA H100 SXM,1,-,op=GEMM BF16;m=16;n=7168;k=2048,latency,ms,0.01"),
      "nvidia-h100 gemm m=16;n=7168;k=2048;dtype=bf16 time");
  EXPECT_EQ(params("operator,s,NVIDIA H100 SXM,1,DeepSeek MLA 128 heads,"
                   "BF16;batch=16;kv_len=1023;TP1,latency,ms,0.03"),
            "nvidia-h100 attention_decode model=deepseek-v3;batch=16;context=1023 time");
}

TEST_F(Publications, OfCollectivesBecomeRowsPerRank) {
  // 1.3 MiB = 1363148.8 bytes.
  EXPECT_EQ(params("collective,HCCL,Atlas 800 A3 752T,8,Qwen3-32B BF16 TP16,"
                   "op=allGather;ranks=16 dies;message=1.3MB (per-rank);mode=microbenchmark,"
                   "latency,us,176.7"),
            "cm384 all_gather ranks=16;bytes=1363149 time");
  // nccl-tests state the whole: 2 MiB / 8 ranks.
  EXPECT_EQ(params("collective,NCCL,NVIDIA H100 SXM NVLink,8,-,"
                   "op=all_gather;ranks=8;nccl-tests size=2097152 bytes (half),latency,ms,0.02"),
            "nvidia-h100 all_gather ranks=8;bytes=262144 time");
  EXPECT_EQ(params("collective,NCCL,NVIDIA H100 SXM NVLink,8,-,"
                   "op=all_reduce;ranks=8;nccl-tests size=2048 bytes (half),latency,ms,0.02"),
            "nvidia-h100 all_reduce ranks=8;bytes=2048 time");
}

TEST_F(Publications, OfTransfersBecomeRows) {
  EXPECT_EQ(params("collective,MemFabric,Atlas A3 SuperPoD / CM384,1,-,"
                   "op=D2RH (device to remote host DRAM);size=2 GB;1 GB=1e9 B,bandwidth,GB/s,74.5"),
            "cm384 host_copy bytes=2000000000;direction=from_device;scope=remote bandwidth");
  EXPECT_EQ(params("collective,CANN EP,Atlas A3 SuperPoD / CM384,4,MoE layer,"
                   "op=dispatch;EP=8;tokens_per_rank=128;hidden=7168;topk=8;payload=7680 B/token,"
                   "latency,us,116"),
            "cm384 dispatch ep=8;tokens_per_rank=128;topk=8;hidden=7168;payload=7680 time");
}

TEST_F(Publications, OfReshardingBecomeRowsOfBothLayouts) {
  EXPECT_EQ(params("resharding,NeMo RL NCCL reshard,NVIDIA H100,,Qwen3-30B-A3B,"
                   "precision=BF16;mapping=EP8xPP2 to TP8xDP2;low end,refit_time,s,0.74"),
            "nvidia-h100 reshard model=qwen3-30b-a3b;from_tp=1;from_pp=2;from_dp=8;from_ep=8;"
            "to_tp=8;to_pp=1;to_dp=2;to_ep=8;framework=nemo-rl time");
}

TEST_F(Publications, OfTrainingBecomeRowsWithTheirLayout) {
  EXPECT_EQ(params("pretrain,Megatron-LM,NVIDIA A100-80G,64,GPT-3 175B,"
                   "TP8 PP8 DP1;interleave=3;batch=64;MBS=1;seq=2048;FP16;full recompute,"
                   "iteration_time,s,18.13"),
            "nvidia-a100 train_iteration model=gpt-3-175b;tp=8;pp=8;dp=1;vpp=3;global_batch=64;"
            "micro_batch=1;seq=2048;recompute=full;memory=report time");
  EXPECT_EQ(params("pretrain,Megatron-LM,NVIDIA A100-80G,,Megatron 22B,"
                   "same parallelism;sequence parallel + selective recompute,"
                   "activation_memory_per_gpu,GiB,9.5625"),
            "nvidia-a100 train_iteration model=megatron-22b;tp=8;pp=1;dp=1;vpp=1;global_batch=4;"
            "micro_batch=4;seq=2048;recompute=selective;sequence_parallel=on;memory=report "
            "activation_memory");
}

TEST_F(Publications, OfFrameworksBecomeTrainingRuns) {
  EXPECT_EQ(params("pretrain,Megatron Bridge,NVIDIA H100,8,Llama-3-70B,"
                   "LoRA;TP2 PP4 DP1 CP1 EP1;interleave=20;batch=32;MBS=1;seq=4096;"
                   "precision=FP8 current scaling;distributed optimizer,throughput_per_gpu,"
                   "tokens/s/GPU,2643"),
            "nvidia-h100 training_run model=llama-3.1-70b;tp=2;pp=4;cp=1;dp=1;ep=1;vpp=20;batch=32;"
            "mbs=1;seq=4096;recompute=none;zero=1;precision=fp8;lora=16;memory=report "
            "throughput_per_device");
  EXPECT_EQ(params("pretrain,MegaScale,NVIDIA A100-class (Ampere),3072,GPT-175B,"
                   "global_batch=6144;seq=2048,mfu,percent,59.1"),
            "nvidia-a100 training_run model=gpt-3-175b;tp=8;pp=8;dp=48;vpp=1..6;batch=6144;"
            "mbs=1..2;seq=2048;recompute=selective..none;attention=fused;zero=1;memory=report mfu");
}

TEST_F(Publications, OfEnginesStateFormatsAndSpeculation) {
  EXPECT_EQ(
      params("serving_decode,SGLang,NVIDIA H200,8,Qwen3-235B-A22B,\"precision=BF16;TP8;"
             "speculation=MTP depth 3, accepted length 3.12;batch=1;mean_input=610;"
             "mean_output=422\",tpot,ms,3.96"),
      "nvidia-h200 serving model=qwen3-235b-a22b;tp=8;dp=1;ep=8;devices=8;batch=1;context=821;"
      "draft=mtp;depth=3;tokens_per_step=3.12 tpot");
  EXPECT_EQ(params("serving_decode,TensorRT-LLM,NVIDIA H100,1,Llama-2-7B,"
                   "precision=FP8 (weights and KV);TP1;batch=56;input=2048;output=2048,"
                   "output_throughput_per_gpu,tokens/s/GPU,2826"),
            "nvidia-h100 serving model=llama-2-7b;tp=1;dp=1;ep=1;devices=1;batch=56;input=2048;"
            "output=2048;weights=fp8;cache=fp8 output_throughput_per_device");
}

TEST_F(Publications, OfRlStepsLeaveTheSpreadOpen) {
  EXPECT_EQ(params("rl_iteration,NeMo RL,NVIDIA H100 (BF16),32,Qwen3-32B,"
                   "\"algo=GRPO;on-policy;max_seq=4096;mean_seq=3251;rollout_batch=2048;"
                   "gen[TP,PP]=[4,1];train[TP,CP,EP,PP,VPP]=[4,1,1,4,-]\",step_time,s,376"),
            "nvidia-h100 rl_step model=qwen3-32b;prompts=128;group=16;prompt_len=128;mean_out=3123;"
            "max_out=4096;p99_over_median=1.5..4;logprob_passes=2;rollout_devices=32;rollout_tp=4;"
            "train_tp=4;train_cp=1;train_ep=1;train_pp=4 time");
}

TEST_F(Publications, StateInOneLineWhyTheyAreNotUsed) {
  EXPECT_EQ(convert("operator,s,NVIDIA H100 SXM,1,-,op=GEMM BF16;m=1;n=1;k=1,latency,ms,1",
                    "notes [secondary]")
                .unused[0]
                .reason,
            "secondary source: orientation only");
  EXPECT_EQ(reason("pretrain,s,NVIDIA A100-80G,1024,Llama-3.1-8B,global_batch=768;seq=2048,"
                   "iteration_time,s,11.9"),
            "conditions missing: layout");
  EXPECT_EQ(reason("rl_iteration,s,NVIDIA H100,8,Qwen9-1B,batch=8x8,step_time,s,1"),
            "model not described: Qwen9-1B");
  EXPECT_EQ(reason("rl_iteration,s,NVIDIA H20,8,Qwen3-8B,x,throughput_ratio,x,2"),
            "a ratio or share, not a cost of one operation");
}

TEST(CoverageTest, CountsPublishedRowsByTableAreaAndReason) {
  std::vector<Comparison> rows = compared(
      "hardware,cards,kind,params,metric,unit,value,table,area\n"
      "h,1,echo,value=1,time,s,1,papers,pretrain\n"
      "h,1,echo,valeu=1,time,s,1,papers,pretrain\n"
      "h,1,echo,value=1,time,s,1,,\n");  // Measured here: not published.
  const std::vector<UnusedRow> unused{
      {"P1", "pretrain mfu", "model not described: GLM-5", "papers"},
      {"P2", "operator latency", "conditions missing: shapes", "papers"}};
  const std::vector<Coverage> areas = coverage(rows, unused);
  ASSERT_EQ(areas.size(), 2U);
  EXPECT_EQ(areas[0].area, "operator");
  EXPECT_EQ(areas[0].points, 0);
  EXPECT_EQ(areas[0].reasons.at("conditions missing: shapes"), 1);
  EXPECT_EQ(areas[1].rows, 3);
  EXPECT_EQ(areas[1].points, 1);
  EXPECT_EQ(areas[1].reasons.at("model not described"), 1);
  EXPECT_EQ(areas[1].reasons.at("the prediction failed"), 1);
  const std::vector<Coverage> tables = by_table(areas);
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].rows, 4);
  EXPECT_EQ(tables[0].points, 1);
}

TEST_F(Publications, KeepTheirTableAndArea) {
  const Conversion out =
      convert("operator,s,NVIDIA H100 SXM,1,-,op=GEMM BF16;m=16;n=7168;k=2048,latency,ms,0.01");
  EXPECT_EQ(out.rows[0].table, "p");
  EXPECT_EQ(out.rows[0].area, "operator");
}

TEST(PublishedBytes, ReadsKilobytesAsBinary) {
  EXPECT_EQ(published_bytes("160KB (per-rank)"), 163840);
  EXPECT_EQ(published_bytes("1 GB"), 1'000'000'000);
  EXPECT_EQ(published_bytes("512 B"), 512);
  EXPECT_EQ(published_bytes("2048 bytes (half)"), 2048);
  EXPECT_FALSE(published_bytes("many"));
}

TEST(ValidationReport, HasEachSection) {
  ReportInput input;
  input.comparisons = compared(kFourRows);
  input.notes.notes["echo"] = "It repeats.";
  input.unused = {{"P1", "operator latency", "conditions missing: shapes"}};
  input.tables = {{"Models left out", "One fit per model.", by_kind(input.comparisons)}};
  HardwareSpec spec;
  spec.name = "h";
  spec.fits = {{"matmul_efficiency", "gemm rows", 7, 0.04, 0.1}};
  input.hardware = {&spec};
  const std::string report = validation_report(input);
  for (const char* expected :
       {"| echo | 4 | 20.0 % | -15.0 % | 50.0 % | 1.000 |",
        "| echo | h | memory | 1 | 50.0 % |",
        "## Models left out\n\nOne fit per model.",
        "| echo on h: value=1 | memory | 200 B | 100 B | -50.0 % | It repeats. |",
        "| echo | value | 1 to 3 |",
        "| h | matmul_efficiency | gemm rows | 7 | 4.0 % | 10.0 % |",
        "| conditions missing: shapes | 1 | P1 |"}) {
    EXPECT_NE(report.find(expected), std::string::npos) << expected << "\n" << report;
  }
}

TEST(Provenance, FindsTheRowsThatAFitNames) {
  Row row;
  row.kind = "gemm";
  row.id = "CO085";
  EXPECT_TRUE(names_row("rows CO041 CO084-CO086; efficiency held", row));
  EXPECT_FALSE(names_row("rows CO041 CO086-CO089", row));
  EXPECT_FALSE(names_row("rows SD084-SD086", row));
  row.id = "h200.csv:12";
  EXPECT_TRUE(names_row("h200.csv", row));
  EXPECT_TRUE(names_row("h200.csv, gemm and moe_layer", row));
  EXPECT_FALSE(names_row("h200.csv, host_to_device", row));
  EXPECT_FALSE(names_row("published rows CO085", row));
}

TEST(Provenance, IsUnrecordedIfTheHardwareNamesNoSource) {
  HardwareSpec spec;
  spec.name = "h";
  Row row;
  row.id = "A1";
  row.hardware = "h";
  row.kind = "gemm";
  const std::vector<const HardwareSpec*> hardware{&spec};
  EXPECT_EQ(provenance(hardware, {}, row), Provenance::Unrecorded);
  spec.fits = {{"operators.matmul_efficiency", "rows B1-B9", 9, 0, 0}};
  EXPECT_EQ(provenance(hardware, {}, row), Provenance::Unused);
  row.id = "B2";
  EXPECT_EQ(provenance(hardware, {}, row), Provenance::Used);
  row.id = "A1";
  row.kind = "all_gather";
  EXPECT_EQ(provenance(hardware, {}, row), Provenance::Unrecorded);
  row.kind = "contended";  // Has no constants.
  EXPECT_EQ(provenance(hardware, {}, row), Provenance::Unused);
}

TEST(Provenance, IsUsedIfTheFrameworkOfTheRowNamesIt) {
  FrameworkSpec spec;
  spec.name = "mine";
  spec.fits = {{"publication load per_tensor", "rows RS1 RS2", 2, 0, 0}};
  const std::vector<const FrameworkSpec*> frameworks{&spec};
  Row row;
  row.id = "RS1";
  row.kind = "reshard";
  EXPECT_EQ(provenance({}, frameworks, row), Provenance::Unrecorded);
  row.params = "model=m;framework=mine";
  EXPECT_EQ(provenance({}, frameworks, row), Provenance::Used);
  row.id = "RS3";
  EXPECT_EQ(provenance({}, frameworks, row), Provenance::Unrecorded);
}

TEST(ReportTables, AreReplacedByTitle) {
  const std::string file = test::temporary_file("tables.yaml");
  std::filesystem::remove(file);
  EXPECT_TRUE(read_report_tables(file)->tables.empty());
  StatisticsTable table{"Left out", "One fit per model.", by_kind(compared(kFourRows))};
  ASSERT_TRUE(put_report_table(file, table));
  table.text = "Again.";
  ASSERT_TRUE(put_report_table(file, table));
  const auto read = read_report_tables(file);
  ASSERT_TRUE(read) << read.error().context;
  ASSERT_EQ(read->tables.size(), 1U);
  EXPECT_EQ(read->tables[0].text, "Again.");
  EXPECT_EQ(*read->tables[0].rows[0].mape, *table.rows[0].mape);
}

}  // namespace
}  // namespace temper::sim_hw
