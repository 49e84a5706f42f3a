// Commands that use their configuration several times read it once: it may come from a pipe.
#include "cli/study/sweep_command.hpp"
#include "cli/study/tune_command.hpp"
#include "core/file_descriptor.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>

namespace temper::cli {
namespace {

/// A pipe that holds a text, with an end after it.
class Pipe {
 public:
  explicit Pipe(const std::string& text) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read_end_ = FileDescriptor(ends[0]);
    const FileDescriptor write_end(ends[1]);
    EXPECT_EQ(::write(write_end.get(), text.data(), text.size()), std::ssize(text));
  }
  std::string path() const { return fmt::format("/dev/fd/{}", read_end_.get()); }

 private:
  FileDescriptor read_end_;
};

/// What the command prints for a configuration in a file. Expects the same for one in a pipe.
template <class Command, class Run>
std::string printed(Command command, Run run) {
  const std::string text = to_yaml(temper::testing::small_pipeline());
  const test::TemporaryFolder folder;
  EXPECT_TRUE(write_file_atomically(folder / "small.yaml", text));
  command.config = (folder / "small.yaml").string();
  std::ostringstream of_file, of_pipe, err;
  EXPECT_EQ(run(command, of_file, err), 0) << err.str();
  const Pipe pipe(text);
  command.config = pipe.path();
  EXPECT_EQ(run(command, of_pipe, err), 0) << err.str();
  EXPECT_EQ(of_pipe.str(), of_file.str());
  return of_pipe.str();
}

TEST(PipedConfig, CanBeSwept) {
  SweepOptions command;
  command.over = {"staleness.bound=0,1"};
  command.steps = 2;
  const std::string out = printed(command, run_sweep);
  EXPECT_NE(out.find("| bound |"), std::string::npos) << out;
}

TEST(PipedConfig, CanBeTuned) {
  TuneOptions command;
  command.modes = {"separate"};
  command.etas = {"1"};
  command.effort = 2;
  command.steps = 1;
  command.json = true;  // without the name of the folder
  const test::TemporaryFolder folder;
  int runs = 0;
  const auto run = [&](TuneOptions c, std::ostream& out, std::ostream& err) {
    c.out = (folder / fmt::format("out-{}", runs++)).string();
    return run_tune(c, out, err);
  };
  const std::string out = printed(command, run);
  EXPECT_NE(out.find("as given"), std::string::npos) << out;
}

}  // namespace
}  // namespace temper::cli
