#include "core/files.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/network/scenarios.hpp"
#include "sim_hw/queries/queries.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>

namespace temper::sim_hw {
namespace {

std::vector<std::vector<std::string>> csv(const std::string& name) {
  const Result<std::string> text =
      read_file(std::string(TEMPER_SOURCE_DIR) + "/tests/golden/simgrid/" + name);
  EXPECT_TRUE(text.has_value());
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');)
      row.push_back(cell);
  }
  rows.erase(rows.begin());  // Its header.
  return rows;
}

double number(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

HardwareSpec hardware(const std::string& name) {
  Catalog catalog(std::string(TEMPER_SOURCE_DIR) + "/configs");
  const Result<const HardwareSpec*> found = catalog.hardware(name);
  EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().context);
  return found ? **found : HardwareSpec{};
}

Result<Cost> ask(std::string machine,
                 std::int64_t cards,
                 std::string kind,
                 std::string_view params) {
  Catalog catalog(std::string(TEMPER_SOURCE_DIR) + "/configs");
  const CostContext context{catalog, {}};
  TEMPER_TRY(Params parsed, Params::parse(params));
  return cost_of(context, {std::move(machine), cards, std::move(kind), std::move(parsed)});
}

TEST(Fluid, AFlowWaitsForItsLatenciesThenRunsAtItsNarrowestLink) {
  FluidNetwork network;
  const std::array route{network.add_link(100, 1), network.add_link(50, 2)};
  FlowSet flows;
  flows.add(route, 500);
  // 1 + 2 + 500 / 50
  EXPECT_DOUBLE_EQ(simulate(network, flows).end, 13);
}

TEST(Fluid, FlowsShareALinkUntilTheShorterOneEnds) {
  FluidNetwork network;
  const std::array route{network.add_link(100)};
  FlowSet flows;
  flows.add(route, 100);
  flows.add(route, 300);
  const FluidResult result = simulate(network, flows);
  // Both at 50 until 2; the second has 200 left, alone at 100.
  EXPECT_DOUBLE_EQ(result.ends[0], 2);
  EXPECT_DOUBLE_EQ(result.ends[1], 4);
}

TEST(Fluid, ALaterFlowTakesItsShareFromItsStart) {
  FluidNetwork network;
  const std::array route{network.add_link(100)};
  FlowSet flows;
  flows.add(route, 300);
  flows.add(route, 100, 1);
  const FluidResult result = simulate(network, flows);
  // 100 moved by 1, then 50 each until the second ends at 3, then the last 100 alone.
  EXPECT_DOUBLE_EQ(result.ends[1], 3);
  EXPECT_DOUBLE_EQ(result.ends[0], 4);
}

TEST(Fluid, WeightsDivideALink) {
  FluidNetwork network;
  const std::array route{network.add_link(90)};
  FlowSet flows;
  flows.add(route, 1, 0, 1);
  flows.add(route, 1, 0, 2);
  EXPECT_EQ(fair_rates(network, flows), (std::vector<double>{30, 60}));
}

TEST(Fluid, FlowsWithoutBytesOrLinksEndAtOnce) {
  FluidNetwork network;
  const std::array route{network.add_link(100, 2)};
  FlowSet flows;
  flows.add(route, 0, 1);
  flows.add({}, 1000, 5);
  EXPECT_EQ(simulate(network, flows).ends, (std::vector<double>{3, 5}));
  EXPECT_EQ(simulate(network, FlowSet{}).end, 0);
}

TEST(Fluid, AllToAllOfEqualDevicesIsOneClassOfFlows) {
  FluidNetwork network;
  FlowSet flows;
  for (int i = 0; i < 2 * 16; ++i)
    network.add_link(100);
  for (LinkId i = 0; i < 16; ++i) {
    for (LinkId j = 0; j < 16; ++j) {
      if (i != j)
        flows.add(std::array{2 * i, 2 * j + 1}, 100);
    }
  }
  const FluidResult result = simulate(network, flows);
  EXPECT_EQ(result.classes, 1U);
  EXPECT_DOUBLE_EQ(result.end, 15);  // 15 x 100 bytes through each port.
}

/// Links and weighted flows, some of them mirror images.
struct RandomCase {
  explicit RandomCase(unsigned seed) {
    std::mt19937 generator(seed);
    const auto draw = [&](unsigned below) { return static_cast<unsigned>(generator() % below); };
    const unsigned links = 2 + draw(12);
    for (unsigned l = 0; l < links; ++l)
      network.add_link(10.0 * (1 + draw(4)), 0.01 * draw(3));
    const unsigned count = 1 + draw(40);
    for (unsigned f = 0; f < count; ++f) {
      std::vector<LinkId> route;
      for (LinkId l = 0; l < links; ++l) {
        if (draw(3) == 0)
          route.push_back(l);
      }
      if (route.empty())
        route.push_back(0);
      flows.add(route, 1 + draw(5), 0.5 * draw(3), 1 + draw(2));
    }
  }
  FluidNetwork network;
  FlowSet flows;
};

TEST(Fluid, NoLinkIsOverloadedAndEveryFlowIsFastestOnSomeFullLink) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const RandomCase c(seed);
    const std::vector<double> rates = fair_rates(c.network, c.flows);
    std::vector<double> load(c.network.links());
    std::vector<double> fastest(c.network.links());
    for (std::size_t f = 0; f < rates.size(); ++f) {
      for (const LinkId l : c.flows.route(f)) {
        load[l] += rates[f];
        fastest[l] = std::max(fastest[l], rates[f] / c.flows.weight(f));
      }
    }
    for (LinkId l = 0; l < c.network.links(); ++l)
      EXPECT_LE(load[l], c.network.bandwidth(l) * (1 + 1e-9)) << seed;
    for (std::size_t f = 0; f < rates.size(); ++f) {
      bool held_back = false;
      for (const LinkId l : c.flows.route(f)) {
        const bool full = load[l] >= c.network.bandwidth(l) * (1 - 1e-9);
        held_back |= full && rates[f] / c.flows.weight(f) >= fastest[l] * (1 - 1e-9);
      }
      EXPECT_TRUE(held_back) << "seed " << seed << " flow " << f;
    }
  }
}

TEST(Fluid, NoFlowEndsBeforeItsBytesFitThroughItsLinksNorAfterAllBytesInTurn) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const RandomCase c(seed);
    const FluidResult result = simulate(c.network, c.flows);
    double in_turn = 0;
    for (std::size_t f = 0; f < c.flows.size(); ++f) {
      double narrowest = 1e300;
      for (const LinkId l : c.flows.route(f))
        narrowest = std::min(narrowest, c.network.bandwidth(l));
      EXPECT_GE(result.ends[f], (c.flows.start(f) + c.flows.bytes(f) / narrowest) * (1 - 1e-9));
      in_turn += c.flows.bytes(f) / narrowest;
    }
    EXPECT_LE(result.end, 2 + in_turn) << seed;  // 2: the latest start and latencies.
  }
}

TEST(Fluid, SplittingEveryFlowIntoEqualPartsOfItsWeightChangesNothing) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const RandomCase c(seed);
    FlowSet halves;
    for (std::size_t f = 0; f < c.flows.size(); ++f) {
      for (int part = 0; part < 2; ++part)
        halves.add(c.flows.route(f), c.flows.bytes(f) / 2, c.flows.start(f), c.flows.weight(f) / 2);
    }
    EXPECT_NEAR(simulate(c.network, halves).end, simulate(c.network, c.flows).end, 1e-9) << seed;
  }
}

TEST(Topology, AFlowUsesTheInnermostLevelThatJoinsItsEnds) {
  const HardwareSpec spec = hardware("cm384");
  Topology topology(spec.levels, 64);
  const auto time = [&](std::int64_t from, std::int64_t to) {
    FlowSet flows;
    topology.add(flows, from, to, 1e9);
    return simulate(topology.network(), flows).end;
  };
  EXPECT_NEAR(time(0, 1), 200e-9 + 1e9 / 224e9, 1e-12);
  EXPECT_NEAR(time(0, 2), 500e-9 + 1e9 / 196e9, 1e-12);
  EXPECT_NEAR(time(0, 16), 5500e-9 + 1e9 / 196e9, 1e-12);
  EXPECT_EQ(time(3, 3), 0);
}

TEST(Scenarios, FlatPatternsMatchSimGrid) {
  for (const auto& row : csv("flat.csv")) {
    const auto devices = static_cast<std::int64_t>(number(row[1]));
    const double bytes = number(row[2]);
    const double time = row[0] == "ring_ar" ? flat_ring_all_reduce_seconds(devices, bytes)
                        : row[0] == "pairwise_a2a"
                            ? flat_pairwise_all_to_all_seconds(devices, bytes)
                            : flat_direct_all_to_all_seconds(devices, bytes);
    EXPECT_NEAR(time * 1e9, number(row[3]), 1e-3 * number(row[3])) << row[0] << " " << devices;
  }
}

TEST(Scenarios, ContendedPatternsMatchSimGridPerGroup) {
  for (const auto& row : csv("contended.csv")) {
    const auto scenario = from_name<Contention>(row[0]);
    ASSERT_TRUE(scenario.has_value()) << row[0];
    const ContentionResult result = contended_seconds(
        *scenario, static_cast<std::int64_t>(number(row[1])), number(row[3]), number(row[4]));
    EXPECT_EQ(static_cast<double>(result.flows), number(row[5])) << row[0];
    EXPECT_NEAR(result.end * 1e9, number(row[6]), 1e-4 * number(row[6])) << row[0];
    EXPECT_NEAR(result.group_end[0] * 1e9, number(row[7]), 1e-4 * number(row[7])) << row[0];
    EXPECT_NEAR(result.group_end[1] * 1e9, number(row[8]), 1e-4 * number(row[8])) << row[0];
  }
}

struct CollectiveRow {
  const char* op;
  std::int64_t ranks;
  double mebibytes;
  double microseconds;
};

double seconds_of(const Fabric& fabric, const CollectiveRow& row) {
  const Group group{row.ranks, 1};
  const double bytes = row.mebibytes * 1048576;
  const std::string_view op = row.op;
  return op == "all_gather"       ? all_gather_seconds(fabric, group, bytes)
         : op == "reduce_scatter" ? reduce_scatter_seconds(fabric, group, bytes)
         : op == "all_reduce"     ? all_reduce_seconds(fabric, group, bytes)
                                  : all_to_all_seconds(fabric, group, bytes);
}

// HCCL microbenchmarks on one Atlas A3 node: rows CO041-CO073, MiB per rank.
constexpr std::array kHccl{CollectiveRow{"all_gather", 16, 1.3, 176.7},
                           CollectiveRow{"all_gather", 16, 3.8, 366.6},
                           CollectiveRow{"all_gather", 16, 5.0, 435.1},
                           CollectiveRow{"all_gather", 16, 8.8, 679.0},
                           CollectiveRow{"all_gather", 16, 21.4, 1628.0},
                           CollectiveRow{"all_gather", 16, 40.0, 3080.2},
                           CollectiveRow{"all_gather", 8, 3.5, 166.9},
                           CollectiveRow{"reduce_scatter", 16, 1.3, 216.3},
                           CollectiveRow{"reduce_scatter", 16, 3.8, 440.7},
                           CollectiveRow{"reduce_scatter", 16, 8.8, 808.5},
                           CollectiveRow{"reduce_scatter", 16, 21.4, 2044.3},
                           CollectiveRow{"reduce_scatter", 16, 40.0, 3664.6},
                           CollectiveRow{"reduce_scatter", 8, 3.5, 202.1}};

TEST(Collectives, LargeMessagesOnOneA3NodeAreWithinATenthOfHccl) {
  const Fabric fabric = make_fabric(hardware("cm384"));
  for (const CollectiveRow& row : kHccl)
    EXPECT_NEAR(seconds_of(fabric, row) * 1e6, row.microseconds, 0.1 * row.microseconds) << row.op;
}

TEST(Collectives, TheProtocolOfHcclChangesBetween465And596KiBPerRank) {
  const Fabric fabric = make_fabric(hardware("cm384"));
  // CO083 and CO084: 30.4 and 155.3 us.
  EXPECT_NEAR(all_gather_seconds(fabric, {8, 1}, 465 * 1024) * 1e6, 30.4, 0.2 * 30.4);
  EXPECT_NEAR(all_gather_seconds(fabric, {8, 1}, 596 * 1024) * 1e6, 155.3, 0.1 * 155.3);
}

TEST(Collectives, ASmallHcclAllReduceFollowsFromItsHalves) {
  // CO063, 12.1 us, is in no fit: reduce-scatter and all-gather of 10 KiB per rank.
  const Fabric fabric = make_fabric(hardware("cm384"));
  EXPECT_NEAR(all_reduce_seconds(fabric, {16, 1}, 160 * 1024) * 1e6, 12.1, 0.1 * 12.1);
}

// NCCL 2.29 on 8 H100: rows CO100-CO116; all-gather and reduce-scatter as MiB per rank.
constexpr std::array kNccl{CollectiveRow{"all_reduce", 8, 2048 / 1048576.0, 15.75},
                           CollectiveRow{"all_reduce", 8, 2, 38.55},
                           CollectiveRow{"all_reduce", 8, 32, 199.92},
                           CollectiveRow{"all_reduce", 8, 128, 578.1},
                           CollectiveRow{"all_reduce", 8, 512, 2112.02},
                           CollectiveRow{"all_gather", 8, 2 / 8.0, 21.98},
                           CollectiveRow{"all_gather", 8, 32 / 8.0, 122.23},
                           CollectiveRow{"all_gather", 8, 128 / 8.0, 390.07},
                           CollectiveRow{"all_gather", 8, 512 / 8.0, 1398.06},
                           CollectiveRow{"reduce_scatter", 8, 2 / 8.0, 18.09},
                           CollectiveRow{"reduce_scatter", 8, 32 / 8.0, 111.72},
                           CollectiveRow{"reduce_scatter", 8, 128 / 8.0, 381.18},
                           CollectiveRow{"reduce_scatter", 8, 512 / 8.0, 1399.23},
                           CollectiveRow{"all_to_all", 8, 2, 18.87},
                           CollectiveRow{"all_to_all", 8, 32, 126.64},
                           CollectiveRow{"all_to_all", 8, 128, 403.9},
                           CollectiveRow{"all_to_all", 8, 512, 1480.67}};

TEST(Collectives, OneH100NodeIsWithinATenthOfNccl) {
  const Fabric fabric = make_fabric(hardware("nvidia-h100"));
  for (const CollectiveRow& row : kNccl)
    EXPECT_NEAR(seconds_of(fabric, row) * 1e6, row.microseconds, 0.1 * row.microseconds) << row.op;
}

constexpr std::array kMachines{
    "cm384", "cm384-x4", "ascend-910b", "nvidia-h200", "nvidia-h100", "nvidia-h800", "nvidia-a100"};
constexpr std::array kOps{"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};

TEST(Collectives, NeverGetFasterWithMoreBytes) {
  for (const char* machine : kMachines) {
    const Fabric fabric = make_fabric(hardware(machine));
    for (const char* op : kOps) {
      for (const std::int64_t ranks : {2, 8, 16, 24, 128, 768, 3072}) {
        double before = 0;
        for (double mebibytes = 1e-4; mebibytes < 5000; mebibytes *= 1.3) {
          const double now = seconds_of(fabric, {op, ranks, mebibytes, 0});
          EXPECT_GE(now, before) << machine << " " << op << " " << ranks << " " << mebibytes;
          before = now;
        }
      }
    }
  }
}

TEST(Collectives, GatheringTakesLongerWithMoreRanks) {
  for (const char* machine : kMachines) {
    const Fabric fabric = make_fabric(hardware(machine));
    for (const char* op : {"all_gather", "reduce_scatter"}) {
      for (const double mebibytes : {0.001, 0.3, 1.0, 64.0}) {
        EXPECT_EQ(seconds_of(fabric, {op, 1, mebibytes, 0}), 0);
        double before = 0;
        for (std::int64_t ranks = 2; ranks <= 4096; ranks *= 2) {
          const double now = seconds_of(fabric, {op, ranks, mebibytes, 0});
          EXPECT_GE(now, before) << machine << " " << op << " " << ranks << " " << mebibytes;
          before = now;
        }
      }
    }
  }
}

TEST(Collectives, AWideStrideLeavesTheNode) {
  const Fabric fabric = make_fabric(hardware("nvidia-h100"));
  // 8 ranks of one node against the first of each of 8 nodes: 450 against 50 GB/s.
  EXPECT_GT(all_gather_seconds(fabric, {8, 8}, 64e6), 5 * all_gather_seconds(fabric, {8, 1}, 64e6));
}

TEST(Collectives, TheHierarchicalDispatchSendsEachNodeOneCopy) {
  const Fabric fabric = make_fabric(hardware("nvidia-h800"));
  const MoeTraffic traffic{4096, 8, 7168};
  // 4 nodes of 8: top-8 reaches 3.6 of them on average, so less than half the copies cross.
  EXPECT_LT(moe_dispatch_seconds(fabric, {32, 1}, traffic, AllToAll::Hierarchical),
            0.6 * moe_dispatch_seconds(fabric, {32, 1}, traffic, AllToAll::Flat));
  EXPECT_DOUBLE_EQ(moe_dispatch_seconds(fabric, {8, 1}, traffic, AllToAll::Hierarchical),
                   moe_dispatch_seconds(fabric, {8, 1}, traffic, AllToAll::Flat));
}

TEST(Collectives, ATreeOfWeightsBeatsASingleSource) {
  const Fabric fabric = make_fabric(hardware("cm384"));
  EXPECT_LT(weight_fan_out_seconds(fabric, {32, 16}, 1e9, FanOut::Tree),
            0.2 * weight_fan_out_seconds(fabric, {32, 16}, 1e9, FanOut::Direct));
}

TEST(Collectives, TheFluidModelAgreesWithTheClosedFormWhereItIsExact) {
  // All-to-all on one switch: 15/16 of the bytes through each port.
  HardwareSpec spec;
  spec.cards_per_node = 16;
  spec.levels.push_back({"switch", 0, BytesPerSecond(392e9), Duration(1900), 1, false});
  const double bytes = 1e9;
  EXPECT_NEAR(all_to_all_seconds(make_fabric(spec), {16, 1}, bytes),
              flat_direct_all_to_all_seconds(16, bytes),
              1e-3 * bytes / 392e9);
}

TEST(NetworkKinds, ReturnATimeWithItsTerms) {
  for (const Kind& kind : network_kinds()) {
    const bool scenario = kind.name.starts_with("flat_") || kind.name == "contended";
    const bool experts = kind.name == "dispatch" || kind.name == "combine";
    const bool reshard = kind.name == "reshard";
    const std::string_view params =
        reshard                              ? "model=qwen3-30b-a3b;from_ep=8;from_dp=8;to_tp=8"
        : kind.name == "cluster_publication" ? "model=qwen3-30b-a3b;from_hardware=nvidia-h800;"
                                               "bandwidth=50e9;from_ep=8;from_dp=8;to_tp=8"
        : kind.name == "host_publication"    ? "bytes=1e6;hosts=4;bandwidth=1e6"
        : scenario                           ? "npus=16;size_bytes=1e6"
        : experts                            ? "tokens_per_rank=128;topk=8;payload=7680"
                                             : "bytes=1e6";
    const Result<Cost> answer = ask("cm384", 8, std::string(kind.name), params);
    ASSERT_TRUE(answer.has_value()) << kind.name << ": " << answer.error().context;
    const Metric* time = answer->find("time");
    ASSERT_NE(time, nullptr) << kind.name;
    EXPECT_GT(time->value, 0) << kind.name;
    double sum = 0;
    for (const Term& term : time->terms)
      sum += term.value;
    EXPECT_DOUBLE_EQ(sum, time->value) << kind.name;
  }
}

TEST(NetworkKinds, AccessRemoteHostMemoryOnlyIfTheHardwareDoes) {
  const auto there = ask("cm384", 1, "host_copy", "bytes=1e9;direction=from_device;scope=remote");
  ASSERT_TRUE(there.has_value());
  EXPECT_NEAR(there->find("bandwidth")->value, 74.5e9, 1e8);
  const auto none = ask("nvidia-h200", 1, "host_copy", "bytes=1e9;scope=remote");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::Unsupported);
}

TEST(NetworkKinds, NameTheNearestAlgorithm) {
  const auto answer = ask("cm384", 8, "all_reduce", "bytes=1e6;algorithm=rign");
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().context.find("did you mean ring?"), std::string::npos)
      << answer.error().context;
}

}  // namespace
}  // namespace temper::sim_hw
