#include <doctest/doctest.h>

#include "actors/plan/distribute.h"
#include "devices/device_registry.h"
#include "devices/kernel_catalog.h"
#include "graph/limits.h"
#include "tests/actors/devices.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("a program within the limit on nodes may have more when it is cut") {
  Graph graph;
  const auto no_op = [&](const std::string& name, std::vector<Node*> controls,
                         const char* device = "/cpu:0") {
    return must(graph.add(name, "NoOp", {}, {}, controls, device));
  };
  Node* first = no_op("first", {});
  // The edge there needs a constant and a Send, and the edge back a Recv.
  std::vector<Node*> all = {no_op("far", {first}, "/cpu:1")};
  const size_t most = Limits().max_nodes;
  while (graph.nodes().size() + 1 < most)
    all.push_back(no_op(std::to_string(all.size()), {}));
  Node* last = no_op("last", all);
  const auto devices = make_devices("cpu:2");
  SessionOptions options;
  options.passes = PassSet::none();
  options.scatter = 1;
  options.schedule_receives = false;
  const Distribution distribution =
      must(distribute({graph,
                       must(FrameMap::build(graph)),
                       options,
                       devices::infos_of(devices),
                       devices::RegisteredKernels(),
                       {}},
                      {{}, {}, {last}}));
  REQUIRE(distribution.partitions.size() == 2);
  CHECK(distribution.partitions[0].program.graph.nodes().size() == most + 2);
}
