#include "graph/write_error.h"

#include <doctest/doctest.h>

#include <cerrno>

using namespace tagflow;

TEST_CASE("what lacks room is exhausted, and all else as its caller says") {
  for (const int number : {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM})
    CHECK(code_of_write(number, Code::kDataLoss) == Code::kResourceExhausted);
  for (const int number : {0, EACCES, EIO, ENOENT, EBADF})
    CHECK(code_of_write(number, Code::kDataLoss) == Code::kDataLoss);
}
