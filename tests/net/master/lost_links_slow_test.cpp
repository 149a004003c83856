// Links between two workers that are lost while both have their master.
#include <doctest/doctest.h>

#include "tests/actors/pending.h"
#include "tests/net/master/tapped.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

}  // namespace

TEST_CASE("workers connect anew, whichever hears first that links are lost") {
  Tap::End heard{};
  SUBCASE("the one that connects") { heard = Tap::End::kConnector; }
  SUBCASE("the one that listens") { heard = Tap::End::kListener; }
  Tapped cluster;
  actors::Program p;
  const Output x = ops::placeholder(p.s.with_device(kHere).named("x"),
                                    DataType::kInt32, PartialShape::scalar());
  const Output y = ops::add(p.s.with_device(kThere), x, 1);
  const Output z = ops::add(p.s.with_device(kHere).named("z"), y, 1);
  must(p.s.status());
  const auto session = cluster.session(p.graph);
  const auto run = [&] {
    return session->run({{"x", Tensor::scalar(40)}}, {z.name()}, {},
                        actors::within_a_minute());
  };
  CHECK(must(must(run())[0].item<int32_t>()) == 42);

  // This end tells the master at once; the other notices a silence later.
  cluster.taps.back().cut_workers(heard);
  Result<std::vector<Tensor>> result = run();
  CHECK(actors::comes_true([&] {
    if (result.ok()) return true;
    INFO(result.status().to_string());
    CHECK(result.status().code() == Code::kUnavailable);
    CHECK(contains(result.status().message(), "/job:worker/task:"));
    result = run();
    return result.ok();
  }));
  // Both ends have the new links now.
  for (int i = 0; i < 20; ++i) {
    INFO(result.status().to_string());
    REQUIRE(result.ok());
    CHECK(must((*result)[0].item<int32_t>()) == 42);
    result = run();
  }
}

}  // namespace tagflow::net
