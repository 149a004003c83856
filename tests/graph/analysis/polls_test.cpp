// Reads of variables that decide whether a loop goes on.
#include "graph/analysis/polls.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A loop of a flag, whose body makes the next one of what it reads.
struct Flagged {
  Graph graph;
  Scope s{graph};
  ops::Variable v =
      ops::variable(s.named("v"), DataType::kBool, PartialShape::scalar());

  bool is_poll(const std::function<Output(const Scope&, const Output& read,
                                          const Output& flag)>& next) {
    while_loop(
        s,
        [](const Scope& in, const Outputs& h) {
          return ops::logical_and(in, h[0], ops::less(in, h[1], 9));
        },
        [&](const Scope& in, const Outputs& h) -> Outputs {
          const Output read =
              ops::read(in.named("read").with_control_dependencies({h[1]}), v);
          return {next(in, read, h[0]), ops::add(in, h[1], 1)};
        },
        {true, 0});
    must(s.status());
    const FrameMap frames = must(FrameMap::build(graph));
    const std::vector<bool> polls = find_polls(graph, frames);
    for (const Node* node : graph.nodes())
      if (polls[node->id()]) {
        CHECK(node->op() == "ReadVariableOp");
        return true;
      }
    return false;
  }
};

}  // namespace

TEST_CASE("polls: a read that the next flag is computed from makes a poll") {
  Flagged f;
  CHECK(f.is_poll([](const Scope& in, const Output& read, const Output& flag) {
    return ops::logical_or(in, flag, read);
  }));
}

TEST_CASE("polls: a read that chooses the next flag makes a poll") {
  Flagged f;
  CHECK(f.is_poll([](const Scope& in, const Output& read, const Output&) {
    return cond(
        in, read,
        [](const Scope& yes) -> Outputs { return {ops::constant(yes, true)}; },
        [](const Scope& no) -> Outputs {
          return {ops::constant(no, false)};
        })[0];
  }));
}

TEST_CASE("polls: a read that reaches the flag by a stack makes a poll") {
  Flagged f;
  const Output stack =
      f.s.op("StackV2", {f.s.constant(Tensor::scalar<int32_t>(9))},
             {{"elem_type", DataType::kBool}});
  CHECK(f.is_poll([&](const Scope& in, const Output& read, const Output&) {
    const Output pushed = in.op("StackPushV2", {stack, read});
    const Output popped = in.with_control_dependencies({pushed}).op(
        "StackPopV2", {stack}, {{"elem_type", DataType::kBool}});
    return Output(
        in.op("EnsureShape", {popped}, {{"shape", PartialShape::scalar()}}));
  }));
}

TEST_CASE("polls: a read that the flag only waits for makes no poll") {
  Flagged f;
  CHECK_FALSE(
      f.is_poll([](const Scope& in, const Output& read, const Output& flag) {
        return ops::identity(in.with_control_dependencies({read}), flag);
      }));
}
