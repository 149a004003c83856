#include "graph/status.h"

#include <doctest/doctest.h>

#include <vector>

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

TEST_CASE("the value of an error, asked for unseen, throws what is wrong") {
  CHECK_THROWS_WITH_AS(quarter_of(6).value(),
                       "no value: InvalidArgument: [half] 3 is odd",
                       BadResultAccess);
  const Result<int> odd = quarter_of(5);
  CHECK_THROWS_AS(*odd, BadResultAccess);
}
