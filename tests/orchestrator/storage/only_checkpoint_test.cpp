// A run whose only checkpoint is damaged: a repair turns one flipped bit back, also of a manifest,
// or else sets the checkpoint aside; either way the run is whole after it and can be resumed.
#include "tests/orchestrator/storage/best_run.hpp"

#include <functional>
#include <initializer_list>

namespace temper::orchestrator {
namespace {

using Damage = std::function<void(const fs::path& checkpoint)>;

void flip(const fs::path& file, std::initializer_list<double> places) {
  std::string bytes = read_file(file).value();
  int bit = 0;
  for (const double place : places)
    bytes.at(static_cast<std::size_t>(place * static_cast<double>(bytes.size()))) ^=
        static_cast<char>(1 << (bit++ % 8));
  ASSERT_TRUE(write_file_atomically(file, bytes));
}

struct DamagedCheckpoint {
  const char* name;
  Damage damage;
  bool stays;  ///< It is mended where it is.
};

class TheOnlyCheckpoint : public BestFiles,
                          public ::testing::WithParamInterface<DamagedCheckpoint> {};

TEST_P(TheOnlyCheckpoint, ThatIsDamagedIsMendedOrSetAsideAndTheRunIsWhole) {
  for (const std::optional<std::uint64_t> killed_after :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(4)}) {
    const StoredRun stored({.keep = 1, .killed_after = killed_after});
    ASSERT_EQ(stored.checkpoints().size(), 1U);
    begin(stored);
    const fs::path checkpoint = RunDir(run()).checkpoints().find().front().folder;
    GetParam().damage(checkpoint);
    ASSERT_FALSE(check_run(run(), Repair::No)->whole());
    const auto repaired = check_run(run(), Repair::Yes);
    ASSERT_TRUE(repaired) << repaired.error().context;
    std::string wrong;
    for (const CheckedFile& file : repaired->files)
      wrong += file.state == FileState::Missing ? file.name + " is missing; " : "";
    EXPECT_TRUE(repaired->whole()) << wrong;
    EXPECT_FALSE(repaired->repaired.empty());
    EXPECT_TRUE(check_run(run(), Repair::No)->whole());
    EXPECT_EQ(fs::exists(checkpoint), GetParam().stays);
    const auto point = find_resume_point(RunDir(run()), stored.config());
    ASSERT_TRUE(point) << point.error().context;
    EXPECT_EQ(point->rollback.checkpoint.has_value(), GetParam().stays);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Damages,
    TheOnlyCheckpoint,
    ::testing::Values(
        DamagedCheckpoint{"ABitOfTheTitleOfTheManifest",
                          [](const auto& c) { flip(c / "manifest", {0.0}); },
                          true},
        DamagedCheckpoint{
            "ABitOfTheManifest", [](const auto& c) { flip(c / "manifest", {0.5}); }, true},
        DamagedCheckpoint{"ABitOfTheHashOfTheManifest",
                          [](const auto& c) { flip(c / "manifest", {0.97}); },
                          true},
        DamagedCheckpoint{"TwoBitsOfTheManifest",
                          [](const auto& c) {
                            flip(c / "manifest", {0.3, 0.6});
                          },
                          false},
        DamagedCheckpoint{"AManifestThatIsCut",
                          [](const auto& c) { fs::resize_file(c / "manifest", 40); },
                          false},
        DamagedCheckpoint{"AManifestThatIsEmpty",
                          [](const auto& c) { fs::resize_file(c / "manifest", 0); },
                          false},
        DamagedCheckpoint{"NoManifest", [](const auto& c) { fs::remove(c / "manifest"); }, false},
        DamagedCheckpoint{
            "ABitOfAFile", [](const auto& c) { flip(c / "orchestrator.msgpack", {0.5}); }, true},
        DamagedCheckpoint{"TwoBitsOfAFile",
                          [](const auto& c) {
                            flip(c / "orchestrator.msgpack", {0.3, 0.6});
                          },
                          false},
        DamagedCheckpoint{
            "NoFileOfTheTrainer", [](const auto& c) { fs::remove(c / "trainer.json"); }, false},
        DamagedCheckpoint{"AFolderThatIsEmpty",
                          [](const auto& c) {
                            fs::remove_all(c);
                            fs::create_directory(c);
                          },
                          false},
        DamagedCheckpoint{"ABitOfTheManifestAndOneOfAFile",
                          [](const auto& c) {
                            flip(c / "manifest", {0.4});
                            flip(c / "orchestrator.msgpack", {0.4});
                          },
                          true}),
    [](const auto& p) { return p.param.name; });

TEST_F(BestFiles, ManifestsOfTheRunAreMendedToo) {
  const StoredRun stored = evaluated_run();
  for (const std::string name : {"inputs.manifest", "outputs.manifest", "best/manifest"}) {
    begin(stored);
    const std::string before = read_file(run() / name).value();
    flip(run() / name, {0.5});
    ASSERT_FALSE(check_run(run(), Repair::No)->whole()) << name;
    EXPECT_TRUE(check_run(run(), Repair::Yes)->whole()) << name;
    EXPECT_EQ(read_file(run() / name).value(), before) << name;
    EXPECT_FALSE(fs::exists(run() / "best.damaged-1")) << name;
  }
}

}  // namespace
}  // namespace temper::orchestrator
