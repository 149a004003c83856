#include "apps/common/child_process.h"

#include <doctest/doctest.h>

namespace tagflow::apps {
namespace {

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

TEST_CASE("how the child ended is told") {
  CHECK(ChildProcess::start({"sh", "-c", "exit 7"}).value().wait() == 7);
  CHECK(ChildProcess::start({"sh", "-c", "kill -9 $$"}).value().wait() ==
        128 + 9);
}

TEST_CASE("a child that has ended is Unavailable, and no end of ours") {
  Result<ChildProcess> child = ChildProcess::start({"true"});
  REQUIRE(child.ok());
  CHECK(child->read_line().status().code() == Code::kUnavailable);
  // Its ends of the pipes close one after the other: soon nobody can listen.
  // What is written until then is less than what a pipe holds.
  Status status;
  for (int i = 0; i < 20'000 && status.ok(); ++i)
    status = child->write_line("x");
  CHECK(status.code() == Code::kUnavailable);
}

}  // namespace
}  // namespace tagflow::apps
