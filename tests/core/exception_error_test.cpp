// Users never see the bare text of an exception.
#include "core/exception_error.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

namespace temper {
namespace {

struct Case {
  const char* name;
  std::function<void()> fails;
  ErrorCode code;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"at() of an empty vector",
       [] { std::ignore = std::vector<int>().at(0); },
       ErrorCode::Internal},
      {"at() of a map", [] { std::ignore = std::map<int, int>().at(1); }, ErrorCode::Internal},
      {"substr() past the end",
       [] { std::ignore = std::string("a").substr(2); },
       ErrorCode::Internal},
      {"stoi() of a word", [] { std::ignore = std::stoi("x"); }, ErrorCode::Internal},
      {"stoi() of a large number",
       [] { std::ignore = std::stoi("99999999999"); },
       ErrorCode::Internal},
      {"an empty optional",
       [] { std::ignore = std::optional<int>().value(); },
       ErrorCode::Internal},
      {"another alternative",
       [] { std::ignore = std::get<int>(std::variant<int, char>('a')); },
       ErrorCode::Internal},
      {"an empty function", [] { std::function<void()>()(); }, ErrorCode::Internal},
      {"a broken expression", [] { std::regex("("); }, ErrorCode::Internal},
      {"an error of a library",
       [] { throw std::runtime_error("first line\nbacktrace"); },
       ErrorCode::Internal},
      {"too long a string",
       [] { std::string().resize(std::string().max_size() + 1); },
       ErrorCode::Internal},
      {"no memory", [] { throw std::bad_alloc(); }, ErrorCode::OutOfMemory},
      {"a file below a file",
       [] { std::ignore = std::filesystem::file_size("/dev/null/x"); },
       ErrorCode::Io},
      {"a folder that is not there",
       [] { std::ignore = std::filesystem::directory_iterator("/no/such/folder"); },
       ErrorCode::Io},
      {"two files", [] { std::filesystem::rename("/no/such/a", "/no/such/b"); }, ErrorCode::Io},
      {"a thread that is not there", [] { std::thread().join(); }, ErrorCode::Io},
      {"a resource of the system",
       [] { throw std::system_error(EMFILE, std::generic_category(), "open"); },
       ErrorCode::Io}};
  return all;
}

TEST(ErrorOf, AddsPlaceAndNextStepToAnException) {
  for (const Case& c : cases()) {
    std::optional<Error> error;
    try {
      c.fails();
    } catch (const std::exception& exception) {
      error = error_of(exception);
      EXPECT_NE(error->context, exception.what()) << c.name;
    }
    ASSERT_TRUE(error) << c.name;
    EXPECT_EQ(error->code, c.code) << c.name << ": " << error->context;
    EXPECT_EQ(error->context.find('\n'), std::string::npos) << c.name;
    if (c.code == ErrorCode::Internal) {
      EXPECT_NE(error->context.find("report"), std::string::npos) << error->context;
    }
  }
}

TEST(ErrorOf, NamesTheFiles) {
  try {
    std::filesystem::rename("/no/such/a", "/no/such/b");
  } catch (const std::exception& exception) {
    const std::string said = error_of(exception).context;
    EXPECT_NE(said.find("/no/such/a"), std::string::npos) << said;
    EXPECT_NE(said.find("/no/such/b"), std::string::npos) << said;
  }
}

TEST(UncaughtExceptionDeathTest, IsReportedFromAnyThread) {
  EXPECT_DEATH(
      {
        report_uncaught_exceptions();
        std::thread([] { std::ignore = std::vector<int>().at(0); }).join();
      },
      "temper: internal error: std::out_of_range: .*please report");
}

}  // namespace
}  // namespace temper
