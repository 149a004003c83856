#include "net/link/retries.h"

#include <doctest/doctest.h>

namespace tagflow::net {
namespace {

// After how many failures of that kind there is no hope; `most` if there is.
int failures_until_given_up(Code code, int most = 100) {
  Retries retries;
  int count = 1;
  while (count < most && retries.may_help(error(code, "a failure"))) ++count;
  return count;
}

}  // namespace

TEST_CASE("connecting again helps unless the two processes cannot fit") {
  CHECK(failures_until_given_up(Code::kUnavailable) == 100);
  CHECK(failures_until_given_up(Code::kDeadlineExceeded) == 100);
  CHECK(failures_until_given_up(Code::kAborted) == 100);
  CHECK(failures_until_given_up(Code::kFailedPrecondition) == 1);
  CHECK(failures_until_given_up(Code::kInvalidArgument) == 1);
  CHECK(failures_until_given_up(Code::kUnauthenticated) == 1);
  CHECK(failures_until_given_up(Code::kDataLoss) == Retries::kMostDoubts);
  CHECK(failures_until_given_up(Code::kAlreadyExists) == Retries::kMostTaken);
}

}  // namespace tagflow::net
