// Constants that a loop puts on a list in each of its iterations.
#include <doctest/doctest.h>

#include <functional>

#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A loop that pushes, and one behind it that pops and gives what it got last.
struct Saving {
  Graph graph;
  Lists lists{graph};
  Endpoint x{placeholder(graph, "x", DataType::kFloat, {2, 3}), 0};

  Endpoint constant_in(const char* frame) {
    return {add(graph, fmt::format("constant_{}", frame), "Enter", {x},
                {{"frame_name", frame}, {"is_constant", true}}),
            0};
  }
  Program build(const std::function<Endpoint(const Endpoint& pushed)>& saved) {
    const Endpoint pushed = constant_in("fill");
    const Loop filled =
        loop(graph, "fill", {lists.empty("empty")}, [&](const Values& in) {
          return Values{lists.push("push", in[0], saved(pushed))};
        });
    return drained({filled.exits[0], 0});
  }
  Program drained(const Endpoint& list) {
    const Loop emptied = loop(graph, "drain", {list, x}, [&](const Values& in) {
      Node* pop = lists.pop("pop", in[0]);
      Node* used = add(graph, "used", "AddV2", {in[1], {pop, 1}});
      return Values{{pop, 0}, {used, 0}};
    });
    return program_of(graph, {emptied.exits[1]->name()});
  }
};

}  // namespace

TEST_CASE("a constant that every iteration saves is not asked of the list") {
  Saving g;
  Program program = g.build([](const Endpoint& pushed) { return pushed; });
  REQUIRE(run_pass(read_saved_constants, program));
  const Node* used = program.graph.find("used");
  REQUIRE(used != nullptr);
  const Node* constant = used->inputs()[1].node;
  CHECK(constant->is_constant_enter());
  CHECK(constant->inputs()[0].to_string() == "x:0");
  CHECK(must(constant->attr<std::string>("frame_name")) == "drain");
  // There may be less on the list than the loop asks for.
  REQUIRE(used->control_inputs().size() == 1);
  CHECK(used->control_inputs()[0]->name() == "pop");
}

TEST_CASE("saved constants: a value that is computed first stays in the list") {
  Saving g;
  Program program = g.build([&](const Endpoint& pushed) {
    return Endpoint{add(g.graph, "computed", "Tanh", {pushed}), 0};
  });
  const std::string before = dump(program.graph);
  CHECK(!run_pass(read_saved_constants, program));
  CHECK(dump(program.graph) == before);
}

TEST_CASE("saved constants: lists of two constants, or with others, stay") {
  for (const char* how : {"two", "reserved", "before"}) {
    CAPTURE(how);
    Saving g;
    const Endpoint y{placeholder(g.graph, "y", DataType::kFloat, {2, 3}), 0};
    const Endpoint pushed = g.constant_in("fill");
    const Endpoint other{add(g.graph, "other", "Enter", {y},
                             {{"frame_name", "fill"}, {"is_constant", true}}),
                         0};
    Endpoint start = g.lists.empty("empty");
    if (how == std::string_view("reserved")) start = g.lists.reserve("some");
    if (how == std::string_view("before"))
      start = g.lists.push("first", start, y);
    const Loop filled = loop(g.graph, "fill", {start}, [&](const Values& in) {
      const Endpoint one = g.lists.push("push", in[0], pushed);
      return Values{how == std::string_view("two")
                        ? g.lists.push("push_other", one, other)
                        : one};
    });
    Program program = g.drained({filled.exits[0], 0});
    const std::string before = dump(program.graph);
    CHECK(!run_pass(read_saved_constants, program));
    CHECK(dump(program.graph) == before);
  }
}

TEST_CASE("saved constants: a list of an outer iteration's values stays") {
  // for (3 times) { pop what came before; push x + i, a constant inside }
  Graph graph;
  const Lists lists{graph};
  const Endpoint x{placeholder(graph, "x", DataType::kFloat, {2, 3}), 0};
  const auto in_frame = [&](const std::string& name, const char* frame,
                            const Endpoint& of) {
    return Endpoint{add(graph, name, "Enter", {of},
                        {{"frame_name", frame}, {"is_constant", true}}),
                    0};
  };
  const auto inner = [&](const char* name, const Values& start,
                         const std::function<Values(const Values&)>& body) {
    Node* limit = constant(graph, fmt::format("{}_limit", name),
                           Tensor::scalar<int32_t>(9));
    Node* begin = constant(graph, fmt::format("{}_begin", name),
                           Tensor::scalar<int32_t>(0));
    for (Node* number : {limit, begin})
      graph.set_control_inputs(number, {&start[0].node, 1});
    return loop_from(graph, name, {begin, 0}, {limit, 0}, start, body);
  };
  const Loop around =
      loop(graph, "around", {lists.empty("empty"), x}, [&](const Values& in) {
        const Endpoint list{add(graph, "list", "Identity", {in[0]}), 0};
        const Endpoint value{add(graph, "value", "Tanh", {in[1]}), 0};
        const Loop drained =
            inner("drain", {list, value}, [&](const Values& v) {
              Node* pop = lists.pop("pop", v[0]);
              Node* used = add(graph, "used", "AddV2", {v[1], {pop, 1}});
              return Values{{pop, 0}, {used, 0}};
            });
        const Endpoint rest{
            add(graph, "rest", "Identity", {{drained.exits[0], 0}}), 0};
        const Endpoint constant = in_frame("constant", "fill", value);
        const Loop filled = inner("fill", {rest}, [&](const Values& v) {
          return Values{lists.push("push", v[0], constant)};
        });
        return Values{{filled.exits[0], 0}, {drained.exits[1], 0}};
      });
  Program program = program_of(graph, {around.exits[1]->name()});
  const std::string before = dump(program.graph);
  CHECK(!run_pass(read_saved_constants, program));
  CHECK(dump(program.graph) == before);
}
