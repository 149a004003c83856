#include "graph/placement/scatter.h"

#include <doctest/doctest.h>

#include <set>

#include "graph/analysis/validate.h"
#include "graph/placement/colocation.h"
#include "tests/graph/placement/check_placement.h"
#include "tests/graph/placement/random_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("scattering puts nodes where they can be, groups together") {
  const auto devices = make_devices(2, 2);
  const Kernels kernels =
      Kernels::on_both({"AddV2", "MatMul", "Neg", "Tanh", "Identity", "StackV2",
                        "StackPushV2", "StackPopV2", "Reshape"});
  int placed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Program program = RandomProgram(seed).make(60, seed % 2 == 1);
    must(validate(program.graph));
    const auto result = scatter(program, devices, kernels, seed);
    if (!result.ok()) {
      const std::string text =
          message_of(result.status(), Code::kInvalidArgument);
      CHECK(seed % 2 == 1);
      CHECK(contains(text, "must be on one device"));
      continue;
    }
    ++placed;
    check_placement(program, devices, kernels, *result);
    CHECK(scatter(program, devices, kernels, seed)->device_of ==
          result->device_of);
    // On no more devices, on request, whatever the constraints say.
    must(scatter(program, make_devices(1), kernels, seed, true));
  }
  CHECK(placed >= 100);
}

TEST_CASE("scattering uses all devices, and another seed scatters otherwise") {
  const auto devices = make_devices(4);
  const Program program = RandomProgram(1).make(200, false);
  const Placement one = must(scatter(program, devices, Kernels(), 1));
  const Placement two = must(scatter(program, devices, Kernels(), 2));
  CHECK(one.device_of != two.device_of);
  std::set<uint32_t> used(one.device_of.begin(), one.device_of.end());
  CHECK(used.size() == 4);
}

TEST_CASE("control flow stays with its data when scattered") {
  const auto devices = make_devices(5);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = RandomProgram(uint32_t(seed)).make(80, false);
    const auto of = must(scatter(program, devices, Kernels(), seed)).device_of;
    for (const Node* node : program.graph.nodes()) {
      CAPTURE(node->name());
      if (node->is_switch() || node->is_exit())
        CHECK(of[node->id()] == of[node->inputs()[0].node->id()]);
      if (!node->is_merge()) continue;
      for (const Endpoint& input : node->inputs())
        if (input.node->is_next_iteration() || input.node->is_enter())
          CHECK(of[node->id()] == of[input.node->id()]);
    }
  }
}

TEST_CASE("the same seed means the same on every machine") {
  Graph graph;
  for (int i = 0; i < 12; ++i) add(graph, fmt::format("n{}", i), "NoOp");
  const Program program = whole(std::move(graph));
  const Placement placement =
      must(scatter(program, make_devices(3), Kernels(), 5));
  CHECK(fmt::format("{}", fmt::join(placement.device_of, "")) ==
        "112122010112");
}

TEST_CASE("scattering refuses a node that cannot be placed") {
  Graph graph;
  on(graph, add(graph, "a", "NoOp"), "/gpu:0");
  const Program program = whole(std::move(graph));
  const auto devices = make_devices(1);
  CHECK(contains(message_of(scatter(program, devices, Kernels(), 1).status(),
                            Code::kInvalidArgument),
                 "there is no such device"));
  CHECK(scatter(program, devices, Kernels(), 1, true).ok());
}
