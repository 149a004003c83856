// Variables that a loop only reads, and constants that it puts on lists.
#include <doctest/doctest.h>

#include <functional>

#include "graph/analysis/loop_shapes.h"
#include "graph/builder/builder.h"
#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Strings = std::vector<std::string>;
using Body = std::function<Output(const Scope&, const Output&)>;

std::vector<const Node*> nodes_of(const Program& program, std::string_view op) {
  std::vector<const Node*> found;
  for (const Node* node : program.graph.nodes())
    if (node->op() == op) found.push_back(node);
  return found;
}

bool may_wait(const Node& node) {
  return node.op().starts_with("QueueDequeue");
}

bool go_ahead(Program& program) {
  return run_pass(read_ahead, program, {.may_wait = may_wait});
}

struct Reading {
  Graph graph;
  Scope s{graph};
  ops::Variable v = variable("v", {4, 4});
  ops::Variable w = variable("w", {4, 4});
  Output x = ops::placeholder(s.named("x"), DataType::kFloat, {4, 4});

  ops::Variable variable(const char* name, PartialShape shape) const {
    return ops::variable(s.named(name), DataType::kFloat, std::move(shape));
  }
  // for (i < 10) h = body(h)
  Output loop(const Output& start, const Body& body,
              const char* name = "loop") const {
    return while_loop(
        s.named(name),
        [](const Scope& in, const Outputs& h) {
          return ops::less(in, h[0], 10);
        },
        [&](const Scope& in, const Outputs& h) -> Outputs {
          return {ops::add(in, h[0], 1), body(in, h[1])};
        },
        {0, start})[1];
  }
  Program program(const Outputs& results, const Strings& targets = {}) const {
    must(s.status());
    Strings fetches;
    for (const Output& result : results) fetches.push_back(result.name());
    Program made = program_of(graph, fetches, targets);
    must(infer_loop_shapes(made.graph));
    return made;
  }
  // Whether the program has reads that go ahead.
  bool goes_ahead(const Outputs& results, const Strings& targets = {}) const {
    Program made = program(results, targets);
    const std::string before = dump(made.graph);
    const bool changed = go_ahead(made);
    const bool is_ahead = !nodes_of(made, "_ReadVariablesAhead").empty();
    CHECK(changed == is_ahead);
    if (!changed) CHECK(dump(made.graph) == before);
    return is_ahead;
  }
  Output product(const Scope& in, const Output& h, const ops::Variable& of,
                 const char* name = "read") const {
    return ops::matmul(in, h, ops::read(in.named(name), of));
  }
};

}  // namespace

TEST_CASE("read-ahead: a variable that a loop only reads is read before it") {
  Reading g;
  const Output result = g.loop(g.x, [&](const Scope& in, const Output& h) {
    return g.product(in, g.product(in, h, g.v, "read_v"), g.w, "read_w");
  });
  Program program = g.program({result});
  REQUIRE(go_ahead(program));
  const auto ahead = nodes_of(program, "_ReadVariablesAhead");
  REQUIRE(ahead.size() == 1);
  CHECK(ahead[0]->num_inputs() == 2);
  CHECK(ahead[0]->output_shape(1) == PartialShape({4, 4}));
  CHECK(ahead[0]->control_inputs().empty());
  CHECK(nodes_of(program, "ReadVariableOp").empty());
  const auto products = nodes_of(program, "MatMul");
  REQUIRE(products.size() == 2);
  for (const Node* product : products) {
    // The constant, once the read in its place has said that it is live.
    const Node* constant = product->inputs()[1].node;
    CHECK(constant->is_constant_enter());
    CHECK(constant->inputs()[0].node == ahead[0]);
    REQUIRE(product->control_inputs().size() == 1);
    const Node* check = product->control_inputs()[0];
    CHECK(check->op() == "_CheckReadAhead");
    CHECK(must(check->attr<int64_t>("index")) == constant->inputs()[0].port);
  }
  CHECK(!go_ahead(program));
}

TEST_CASE("read-ahead: a variable that a loop reads twice is one value") {
  Reading g;
  Program program =
      g.program({g.loop(g.x, [&](const Scope& in, const Output& h) {
        return g.product(in, g.product(in, h, g.v, "one"), g.v, "two");
      })});
  REQUIRE(go_ahead(program));
  const auto ahead = nodes_of(program, "_ReadVariablesAhead");
  REQUIRE(ahead.size() == 1);
  CHECK(ahead[0]->num_inputs() == 1);
  CHECK(nodes_of(program, "_CheckReadAhead").size() == 2);
}

TEST_CASE("read-ahead: a loop with an effect reads in its turn") {
  Reading g;
  CHECK_FALSE(g.goes_ahead({g.loop(g.x, [&](const Scope& in, const Output& h) {
    const OpResult random =
        in.op("RandomUniform", {in.constant(Tensor::vector<int32_t>({4, 4}))},
              {{"dtype", DataType::kFloat}});
    return g.product(in, ops::add(in, h, random[0]), g.v);
  })}));
}

TEST_CASE("read-ahead: an input that depends on a loop's result stays apart") {
  // The queue may get what the loop gives before it gives what enters.
  Reading g;
  const std::vector<DataType> types = {DataType::kFloat};
  const Output queue =
      g.s.named("queue").op("FIFOQueueV2", {}, {{"component_types", types}});
  const auto result_of = [&](bool is_from_queue) {
    const Output start =
        is_from_queue ? ops::reshape(g.s,
                                     g.s.op("QueueDequeueV2", {queue},
                                            {{"component_types", types}})[0],
                                     {4, 4})
                      : g.x;
    return g.loop(start, [&](const Scope& in, const Output& h) {
      return g.product(in, h, g.v);
    });
  };
  const Output fed = result_of(true);
  CHECK(g.goes_ahead({fed}));
  g.s.named("put").op("QueueEnqueueV2", {queue, fed}, {{"Tcomponents", types}});
  CHECK_FALSE(g.goes_ahead({fed}, {"put"}));
  const Output other = result_of(false);
  g.s.named("put_other")
      .op("QueueEnqueueV2", {queue, other}, {{"Tcomponents", types}});
  CHECK(g.goes_ahead({other}, {"put_other"}));
}

TEST_CASE("read-ahead: a variable is read after all that precedes the loop") {
  Reading g;
  const Output set = ops::assign_add(g.s.named("set"), g.v, g.x);
  const Output start =
      ops::identity(g.s.with_control_dependencies({set}).named("start"), g.x);
  Program program =
      g.program({g.loop(start, [&](const Scope& in, const Output& h) {
        return g.product(in, h, g.v);
      })});
  REQUIRE(go_ahead(program));
  const auto ahead = nodes_of(program, "_ReadVariablesAhead");
  REQUIRE(ahead.size() == 1);
  REQUIRE(ahead[0]->control_inputs().size() == 1);
  CHECK(ahead[0]->control_inputs()[0]->name() == "start");
}

TEST_CASE("read-ahead: a loop that changes a variable reads in its turn") {
  Reading g;
  CHECK_FALSE(g.goes_ahead({g.loop(g.x, [&](const Scope& in, const Output& h) {
    const Output read = ops::read(in, g.v);
    const Output set =
        ops::assign_add(in.with_control_dependencies({read}), g.w, h);
    return ops::matmul(in.with_control_dependencies({set}), h, read);
  })}));
}

TEST_CASE("read-ahead: an inner loop goes ahead, the outer one does not") {
  Reading g;
  const auto inner = [&](const Scope& in, const Output& h) {
    return while_loop(
        in,
        [](const Scope& c, const Outputs& i) { return ops::less(c, i[0], 3); },
        [&](const Scope& b, const Outputs& i) -> Outputs {
          return {ops::add(b, i[0], 1), g.product(b, i[1], g.v, "inner")};
        },
        {0, h})[1];
  };
  Program program =
      g.program({g.loop(g.x, [&](const Scope& in, const Output& h) {
        return g.product(in, inner(in, h), g.w, "outer");
      })});
  REQUIRE(go_ahead(program));
  const auto ahead = nodes_of(program, "_ReadVariablesAhead");
  REQUIRE(ahead.size() == 1);
  CHECK(ahead[0]->num_inputs() == 1);
  CHECK(ahead[0]->inputs()[0].node->is_constant_enter());
}

TEST_CASE("read-ahead: a loop that polls a variable reads it each time") {
  Reading g;
  const ops::Variable stop =
      ops::variable(g.s.named("stop"), DataType::kBool, PartialShape::scalar());
  const Outputs result = while_loop(
      g.s.named("poll"),
      [&](const Scope& in, const Outputs& h) {
        return ops::logical_not(
            in, ops::read(in.with_control_dependencies({h[0]}), stop));
      },
      [&](const Scope& in, const Outputs& h) -> Outputs {
        return {g.product(in, h[0], g.v)};
      },
      {g.x});
  CHECK_FALSE(g.goes_ahead({result[0]}));
}

TEST_CASE("read-ahead: a loop that may not be entered reads in its turn") {
  Reading g;
  const Output p = ops::placeholder(g.s.named("p"), DataType::kBool, {});
  const auto sides = ops::switch_(g.s.named("side"), g.x, p);
  CHECK_FALSE(g.goes_ahead(
      {g.loop(sides.on_true, [&](const Scope& in, const Output& h) {
        return g.product(in, h, g.v);
      })}));
}

TEST_CASE("read-ahead: a variable of unknown shape is read in its turn") {
  Reading g;
  const ops::Variable open = g.variable("open", {4, -1});
  CHECK_FALSE(g.goes_ahead({g.loop(g.x, [&](const Scope& in, const Output& h) {
    return ops::add(in, h, ops::read(in, open));
  })}));
}
