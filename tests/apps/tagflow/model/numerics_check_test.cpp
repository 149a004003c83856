#include "apps/tagflow/model/numerics_check.h"

#include <doctest/doctest.h>

#include <cmath>

#include "actors/plan/plan.h"
#include "actors/runtime/frame.h"
#include "graph/builder/builder.h"
#include "graph/status_exception.h"

using namespace tagflow;
using namespace tagflow::apps;
using namespace tagflow::graph;

namespace {

// y = log(x)
struct LogGraph {
  Graph graph;
  const Node* x = nullptr;
  const Node* y = nullptr;

  LogGraph() {
    const Scope s(graph);
    ops::log(s.named("y"),
             ops::placeholder(s.named("x"), DataType::kFloat, {}));
    REQUIRE(s.ok());
    x = graph.find("x");
    y = graph.find("y");
  }
};

// Iteration `iteration` of a loop, of which there is one instance.
actors::Location in_iteration(int64_t iteration) {
  static const auto* const instance = [] {
    static actors::FramePlan plan;
    plan.name = "loop";
    plan.parent = 0;
    static actors::FrameInstance loop;
    loop.plan = &plan;
    return &loop;
  }();
  return {.frame = "loop",
          .tag = {.frame_hi = 1, .frame_lo = 2, .iteration = iteration},
          .instance = instance};
}

void fire(NumericsCheck& check, int64_t iteration, const Node& node,
          float value) {
  const Tensor output = Tensor::scalar(value);
  check.on_fired(in_iteration(iteration), node, std::span(&output, 1));
}

std::string text_of_nan(NumericsCheck& check, int64_t iteration,
                        const Node& node) {
  try {
    fire(check, iteration, node, std::nanf(""));
  } catch (const StatusException& thrown) {
    return std::string(thrown.status().message());
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("the inputs of a NaN are those of its iteration, if others go on") {
  const LogGraph g;
  NumericsCheck check;
  fire(check, 3, *g.x, -3);
  fire(check, 4, *g.x, 4);
  fire(check, 4, *g.y, 1.5f);
  fire(check, 5, *g.x, 5);
  CHECK(text_of_nan(check, 3, *g.y)
            .ends_with("with NaN at element 0; its inputs: x:0 float[] of -3"));
}

TEST_CASE("what arrives in an iteration is an input there") {
  const LogGraph g;
  NumericsCheck check;
  check.on_arrive(in_iteration(7), *g.x, Tensor::scalar(-7.f), false);
  check.on_arrive(in_iteration(8), *g.x, Tensor::scalar(8.f), false);
  CHECK(text_of_nan(check, 7, *g.y).ends_with("x:0 float[] of -7"));
}

TEST_CASE("an iteration that has ended leaves nothing") {
  const LogGraph g;
  NumericsCheck check;
  fire(check, 3, *g.x, -3);
  check.on_iteration_end(in_iteration(3));
  CHECK(text_of_nan(check, 3, *g.y).ends_with("its inputs: x:0"));
}
