#include "graph/status.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/failing_new.h"

using namespace tagflow;

namespace {

Result<int> half_of(int n) {
  if (n % 2 != 0) return invalid_argument("[half] {} is odd", n);
  return n / 2;
}

Result<int> quarter_of(int n) {
  TAGFLOW_ASSIGN(const int half, half_of(n));
  return half_of(half);
}

Status check_quarter(int n) {
  TAGFLOW_RETURN_IF_ERROR(quarter_of(n).status());
  return {};
}

}  // namespace

TEST_CASE("a status without an error is OK and one pointer wide") {
  const Status status;
  CHECK(status.ok());
  CHECK(status.code() == Code::kOk);
  CHECK(status.message().empty());
  CHECK(status.to_string() == "OK");
  CHECK(sizeof(Status) == sizeof(void*));
}

TEST_CASE("an error shows its code by name and its message") {
  const Status status = error(Code::kNotFound, "[graph] no node \"{}\"", "x");
  CHECK(status.to_string() == "NotFound: [graph] no node \"x\"");
}

TEST_CASE("a copy of an error is independent of the original") {
  Status first = invalid_argument("one");
  const Status second = first;
  first = error(Code::kAborted, "two");
  CHECK(second.to_string() == "InvalidArgument: one");
  CHECK(first.to_string() == "Aborted: two");
  Status& same = first;
  first = same;
  CHECK(first.to_string() == "Aborted: two");
}

TEST_CASE("a prefix put before a copy of an error leaves the original") {
  const Status first = invalid_argument("bad");
  Status copy = first;
  copy = std::move(copy).with_prefix("here: ");
  CHECK(copy.to_string() == "InvalidArgument: here: bad");
  CHECK(first.message() == "bad");
}

TEST_CASE("out of memory is an error that needs none") {
  FailAllocation fail(1);
  const Status status = Status::out_of_memory();
  Status copy = status;
  const Status moved = std::move(copy);
  const bool failed = fail.failed();
  const Status prefixed =
      Status(moved).with_prefix("[some long name of an op]");
  const bool failed_then = fail.failed();
  fail.stop();
  CHECK(!failed);
  CHECK(failed_then);
  CHECK(moved.to_string() == "ResourceExhausted: out of memory");
  CHECK(prefixed.to_string() == "ResourceExhausted: out of memory");
  CHECK(Status(moved).with_prefix("here: ").message() == "here: out of memory");
  CHECK(status.message() == "out of memory");
}

TEST_CASE("an error that memory is too short for is out of memory") {
  const auto make = [] {
    return error(Code::kNotFound, "[graph] no node \"{}\", which is needed",
                 "x")
        .with_prefix("[a prefix that is not short] ");
  };
  const std::string expected = make().to_string();
  for (int64_t k = 1;; ++k) {
    FailAllocation fail(k);
    const Status status = make();
    const Status copy = status;
    fail.stop();
    INFO(status.to_string());
    CHECK(copy.to_string() == status.to_string());
    if (!fail.failed()) {
      CHECK(k > 2);
      CHECK(status.to_string() == expected);
      break;
    }
    const bool whole = status.code() == Code::kNotFound;
    CHECK(status.message().ends_with(whole ? std::string_view("which is needed")
                                           : "out of memory"));
  }
}

TEST_CASE("a prefix is put before a message and leaves success alone") {
  CHECK(invalid_argument("bad").with_prefix("here: ").message() == "here: bad");
  CHECK(Status().with_prefix("here: ").ok());
}

TEST_CASE("every code has a name of its own, with TensorFlow's numbers") {
  std::vector<std::string> seen;
  for (int code = 0; code <= 16; ++code) {
    const std::string name(code_name(Code(code)));
    CHECK(std::ranges::find(seen, name) == seen.end());
    seen.push_back(name);
  }
  CHECK(seen[3] == "InvalidArgument");
  CHECK(seen[11] == "OutOfRange");
  CHECK(seen[16] == "Unauthenticated");
  CHECK(code_name(Code::kDeadlock) == "Deadlock");
  CHECK(code_name(Code(200)) == "Unknown");
}

TEST_CASE("a result holds a value or the error that prevented it") {
  CHECK(*quarter_of(12) == 3);
  CHECK(quarter_of(12).status().ok());
  CHECK_FALSE(quarter_of(6).ok());
  CHECK(quarter_of(6).status().message() == "[half] 3 is odd");
  CHECK(check_quarter(8).ok());
  CHECK(check_quarter(5).message() == "[half] 5 is odd");
}

TEST_CASE("a result's value throws the error if there is one") {
  CHECK_THROWS_WITH_AS(quarter_of(6).value(),
                       "no value: InvalidArgument: [half] 3 is odd",
                       BadResultAccess);
  const Result<int> odd = quarter_of(5);
  CHECK_THROWS_AS(*odd, BadResultAccess);
}
