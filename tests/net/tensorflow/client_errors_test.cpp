#include "net/tensorflow/client_errors.h"

#include <doctest/doctest.h>

namespace tagflow::net {
namespace {

TEST_CASE("the node of an error is the one that failed") {
  CHECK(node_in("[Add] bad node \"a\" (node \"b/c\", device CPU)") == "b/c");
  CHECK(node_in("node \"a\": no op \"B\"") == "a");
  CHECK(node_in("no name").empty());
  CHECK(node_in("node \"open").empty());
}

TEST_CASE("clients get the node, and codes that they know") {
  CHECK(for_client(Status()).ok());
  const Status status =
      for_client(error(Code::kDeadlock, "nothing moves (node \"x\")"));
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(status.message() == "nothing moves (node \"x\")\n\t [[{{node x}}]]");
  // What has the form keeps it.
  CHECK(for_client(status).message() == status.message());
  CHECK(for_client(invalid_argument("{{}} plain")).message() == "{} plain");
}

}  // namespace
}  // namespace tagflow::net
