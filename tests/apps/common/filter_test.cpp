#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "apps/common/child_process.h"

using namespace tagflow;
using apps::run_filter;
using std::chrono::seconds;

TEST_CASE("a filter gives back what the program writes") {
  const auto output = run_filter({"tr", "a-z", "A-Z"}, "abc\n", seconds(60));
  REQUIRE(output.ok());
  CHECK(*output == "ABC\n");
}

TEST_CASE("a filter's input and output may be larger than a pipe") {
  const std::string input(5'000'000, 'x');
  const auto output = run_filter({"cat"}, input, seconds(60));
  REQUIRE(output.ok());
  CHECK(*output == input);
}

TEST_CASE("a filter that does not read its input may still answer") {
  const std::string input(5'000'000, 'x');
  const auto output = run_filter({"echo", "no"}, input, seconds(60));
  REQUIRE(output.ok());
  CHECK(*output == "no\n");
}

TEST_CASE("a filter that is not there, fails or hangs is an error") {
  const Status missing =
      run_filter({"/no/such/program"}, "", seconds(60)).status();
  CHECK(missing.code() == Code::kNotFound);
  CHECK(missing.message().find("[process] cannot start \"/no/such/program\"") ==
        0);
  const Status failed = run_filter({"false"}, "", seconds(60)).status();
  CHECK(failed.code() == Code::kUnknown);
  CHECK(failed.message() == "[process] \"false\" ended with status 1");
  const Status late =
      run_filter({"sleep", "600"}, "", std::chrono::milliseconds(20)).status();
  CHECK(late.code() == Code::kDeadlineExceeded);
  CHECK(late.message() == "[process] \"sleep\" took too long");
}
