#include "net/transfer/identity.h"

#include <doctest/doctest.h>

#include "graph/op_registry.h"

namespace tagflow::net {
namespace {

Identity identity() {
  auto made = make_identity(Role::kWorker, {"worker", 0}, "test", "secret");
  REQUIRE(made.ok());
  return std::move(*made);
}

}  // namespace

TEST_CASE("two processes of a build have one digest, until an op is loaded") {
  const Identity first = identity();
  const Identity second = identity();
  CHECK(first.digest == second.digest);
  CHECK(first.incarnation != second.incarnation);
  REQUIRE(
      graph::OpRegistry::global()
          .add(graph::OpDefBuilder("OfAnotherBuild").input("x: int32").build())
          .ok());
  CHECK(identity().digest != first.digest);
}

}  // namespace tagflow::net
