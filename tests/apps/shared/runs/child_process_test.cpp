#include "apps/shared/runs/child_process.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace tagflow::apps {
namespace {

constexpr std::chrono::seconds kLong(60);

TEST_CASE("lines go to the child and come back") {
  Result<ChildProcess> cat = ChildProcess::start({"cat"});
  REQUIRE(cat.ok());
  REQUIRE(cat->write_line("first").ok());
  CHECK(cat->read_line().value() == "first");
  REQUIRE(cat->write_line("").ok());
  CHECK(cat->read_line().value().empty());
  CHECK(cat->wait() == 0);
}

TEST_CASE("a program that is not there is NotFound") {
  const Result<ChildProcess> none = ChildProcess::start({"/no/such/program"});
  REQUIRE(!none.ok());
  CHECK(none.status().code() == Code::kNotFound);
}

TEST_CASE("a child process tells its exit code or its signal") {
  CHECK(ChildProcess::start({"sh", "-c", "exit 7"}).value().wait() == 7);
  CHECK(ChildProcess::start({"sh", "-c", "kill -9 $$"}).value().wait() ==
        128 + 9);
}

TEST_CASE("a child that has ended is Unavailable, and no end of ours") {
  Result<ChildProcess> child = ChildProcess::start({"true"});
  REQUIRE(child.ok());
  CHECK(child->read_line().status().code() == Code::kAborted);
  // Its ends of the pipes close one after the other: soon nobody can listen.
  // What is written until then is less than what a pipe holds.
  Status status;
  for (int i = 0; i < 20'000 && status.ok(); ++i)
    status = child->write_line("x");
  CHECK(status.code() == Code::kAborted);
}

TEST_CASE("a filter gives back what the program writes") {
  const auto output = run_filter({"tr", "a-z", "A-Z"}, "abc\n", kLong);
  REQUIRE(output.ok());
  CHECK(*output == "ABC\n");
}

TEST_CASE("a filter's input and output may be larger than a pipe") {
  const std::string input(5'000'000, 'x');
  const auto output = run_filter({"cat"}, input, kLong);
  REQUIRE(output.ok());
  CHECK(*output == input);
}

TEST_CASE("a filter that does not read its input may still answer") {
  const std::string input(5'000'000, 'x');
  const auto output = run_filter({"echo", "no"}, input, kLong);
  REQUIRE(output.ok());
  CHECK(*output == "no\n");
}

TEST_CASE("a filter that is not there, fails or hangs is an error") {
  const Status missing = run_filter({"/no/such/program"}, "", kLong).status();
  CHECK(missing.code() == Code::kNotFound);
  CHECK(missing.message().find("[process] cannot start \"/no/such/program\"") ==
        0);
  const Status failed = run_filter({"false"}, "", kLong).status();
  CHECK(failed.code() == Code::kUnknown);
  CHECK(failed.message() == "[process] \"false\" ended with status 1");
  const Status late =
      run_filter({"sleep", "600"}, "", std::chrono::milliseconds(20)).status();
  CHECK(late.code() == Code::kDeadlineExceeded);
  CHECK(late.message() == "[process] \"sleep\" took too long");
  // One that writes no more, but lives on.
  const Status silent = run_filter({"sh", "-c", "exec >&-; exec sleep 600"}, "",
                                   std::chrono::milliseconds(20))
                            .status();
  CHECK(silent.message() == "[process] \"sh\" took too long");
}

}  // namespace
}  // namespace tagflow::apps
