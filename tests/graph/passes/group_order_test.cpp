#include <doctest/doctest.h>

#include "tests/graph/passes/group_graphs.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("groups: nodes that are live under other conditions are apart") {
  Elements g;
  Node* p = placeholder(g.graph, "p", DataType::kBool);
  Node* branch = add(g.graph, "branch", "Switch", {{g.y, 0}, {p, 0}});
  Node* pivot = add(g.graph, "pivot", "Identity", {{branch, 1}});
  Node* a = g.unary("a", g.x);
  Node* b = g.binary("b", "Mul", a, pivot);  // dead if p is false
  g.unary("c", b);
  Node* other = add(g.graph, "other", "Identity", {{branch, 0}});
  Node* d = g.binary("d", "Sub", a, other);
  g.unary("e", d);
  g.unary("f", a, "Neg");
  g.unary("g", a, "Abs", {other});  // waits for a side
  CHECK(groups(g.graph, {"a", "b", "c", "d", "e", "f", "g"}) ==
        "a f, b c, d e");
  // Groups are also ordered through the columns of a tensor.
  Graph gates;
  Node* whole = placeholder(gates, "whole", DataType::kFloat, {-1, 64});
  Node* side = placeholder(gates, "side", DataType::kBool);
  Node* choice = add(gates, "choice", "Switch", {{side, 0}, {side, 0}});
  Node* taken = add(gates, "taken", "Identity", {{choice, 1}});
  Node* axis = number(gates, "axis", 1);
  Node* split = add(gates, "split", "Split", {{axis, 0}, {whole, 0}},
                    {{"num_split", int64_t{2}}});
  add(gates, "h", "Tanh", {{split, 0}});
  add(gates, "i", "Tanh", {{split, 1}}, {}, {taken});
  Program program = program_of(gates, {"h", "i"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(!run_group(program));
}

namespace {

// A loop of `start`, whose body has Tanh "in_a" and Neg "in_b" of what comes,
// of which "in_sum" is handed on. Without a LoopCond it is one that nobody can
// cut.
Node* loop_of(Elements& g, Node* start, bool has_cond = true) {
  const AttrMap frame = {{"frame_name", "loop"}};
  const AttrMap constant = {{"frame_name", "loop"}, {"is_constant", true}};
  Node* p = placeholder(g.graph, "p", DataType::kBool);
  Node* enter = add(g.graph, "enter", "Enter", {{start, 0}}, frame);
  Node* goes_on = add(g.graph, "goes_on", "Enter", {{p, 0}}, constant);
  Node* merge = add(g.graph, "merge", "Merge", {{enter, 0}, {}});
  Node* test = add(g.graph, "test", "LogicalAnd", {{goes_on, 0}, {goes_on, 0}},
                   {}, {merge});
  if (has_cond) test = add(g.graph, "cond", "LoopCond", {{test, 0}});
  Node* branch = add(g.graph, "branch", "Switch", {{merge, 0}, {test, 0}});
  Node* body = add(g.graph, "body", "Identity", {{branch, 1}});
  Node* a = g.unary("in_a", body);
  Node* b = g.unary("in_b", a, "Neg");
  Node* sum = g.binary("in_sum", "AddV2", a, b);
  Node* next = add(g.graph, "next", "NextIteration", {{sum, 0}});
  must(g.graph.set_input(merge, 1, {next, 0}));
  return add(g.graph, "exit", "Exit", {{branch, 0}});
}

}  // namespace

TEST_CASE("groups: iterations and frames are groups of their own") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.unary("b", a);
  Node* exit = loop_of(g, b);
  g.binary("c", "Mul", g.unary("d", exit), exit);
  CHECK(groups(g.graph, {"c", "d"}) == "a b, c d, in_a in_b in_sum");
  // Of a loop that is not as loops are, nothing is known.
  Elements h;
  loop_of(h, h.x, false);
  CHECK(groups(h.graph, {"exit"}).empty());
}

TEST_CASE("groups: a loop's input and its result are not in one group") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* product = g.matmul("product", a);
  Node* exit = loop_of(g, g.x);
  // The body's sum is of the product, too, which no Merge waits for.
  Node* enter = add(g.graph, "enter_product", "Enter", {{product, 0}},
                    {{"frame_name", "loop"}, {"is_constant", true}});
  must(g.graph.set_input(g.graph.find("in_sum"), 0, {enter, 0}));
  g.binary("b", "AddV2", a, exit);
  for (const Strings& fetches :
       {Strings{"a", "b"}, Strings{"b"}, Strings{"b", "product"}}) {
    CHECK(!contains(groups(g.graph, fetches), "a b"));
  }
}

TEST_CASE("groups: no group waits for what is made of its own results") {
  Elements g;
  Node* a = g.unary("a", g.x);
  g.binary("b", "Mul", a, g.matmul("product", a));
  CHECK(groups(g.graph, {"a", "b"}).empty());
  // A control edge makes a cycle as well.
  Elements h;
  Node* c = h.unary("c", h.x);
  h.unary("d", c, "Neg", {h.matmul("product", c)});
  CHECK(groups(h.graph, {"c", "d"}).empty());
}

TEST_CASE("groups: no two groups wait for each other") {
  // Either pair could be a group, but not both.
  Elements g;
  Node* p = g.unary("p", g.x);
  Node* q = g.unary("q", g.y);
  Node* p1 = g.unary("p1", p, "Neg");
  Node* q2 = g.unary("q2", q, "Neg");
  g.binary("p2", "Mul", p, g.matmul("from_q", q2));
  g.binary("q1", "Mul", q, g.matmul("from_p", p1));
  Program program = program_of(g.graph, {"p", "q", "p1", "p2", "q1", "q2"});
  CHECK(run_group(program));
  const auto are_together = [&](const std::string& a, const std::string& b) {
    return std::ranges::any_of(program.graph.nodes(), [&](const Node* node) {
      if (node->op() != "_FusedElementwise") return false;
      const auto names = must(node->attr<Strings>("names"));
      return std::ranges::find(names, a) != names.end() &&
             std::ranges::find(names, b) != names.end();
    });
  };
  CHECK(!(are_together("p1", "p2") && are_together("q1", "q2")));
  CHECK((are_together("p", "p1") || are_together("q", "q2")));
}

namespace {

struct Queued : Elements {
  using Types = std::vector<DataType>;

  Queued() {
    queue = add(graph, "queue", "FIFOQueueV2", {},
                {{"component_types", Types{DataType::kFloat}}});
    // It has to be there for both.
    a = unary("a", x);
    add(graph, "put", "QueueEnqueueV2", {{queue, 0}, {a, 0}},
        {{"Tcomponents", Types{DataType::kFloat}}});
    Node* got = add(graph, "got", "QueueDequeueV2", {{queue, 0}},
                    {{"component_types", Types{DataType::kFloat}}});
    taken = square("taken", {got, 0});
  }
  static bool may_wait(const Node& node) {
    return node.op() == "QueueEnqueueV2" || node.op() == "QueueDequeueV2";
  }

  Node *queue, *a, *taken;
};

}  // namespace

TEST_CASE("groups: a queue's element does not wait for that same queue") {
  Queued g;
  g.binary("b", "Mul", g.a, g.taken);
  CHECK(
      groups(g.graph, {"b"}, {"put"}, {.may_wait = Queued::may_wait}).empty());
  // As far as anybody knows, a Dequeue that does not wait does not matter.
  CHECK(groups(g.graph, {"b"}, {"put"}) == "a b");
  // Each side alone may be a group.
  Queued h;
  Node* c = h.unary("c", h.a, "Neg");
  h.unary("d", h.binary("e", "Sub", c, h.taken));
  CHECK(groups(h.graph, {"c", "d", "e"}, {"put"},
               {.may_wait = Queued::may_wait}) == "a c, d e");
}

TEST_CASE("groups: a queue splits a group from afar, and through a loop") {
  Queued g;
  Node* first = g.unary("first", g.x, "Square");
  must(g.graph.set_input(g.a, 0, {g.matmul("product", first), 0}));
  Node* exit = loop_of(g, g.matmul("other", g.taken));
  g.binary("last", "Sub", first, exit);
  CHECK(!contains(
      groups(g.graph, {"last"}, {"put"}, {.may_wait = Queued::may_wait}),
      "first last"));
  // Nothing that leaves the loop is made of what is taken in it, but it does
  // not end before that is there.
  Queued h;
  Node* out = loop_of(h, h.x);
  Node* body = h.graph.find("body");
  Node* handle = add(h.graph, "handle", "Enter", {{h.queue, 0}},
                     {{"frame_name", "loop"}, {"is_constant", true}});
  Node* inside =
      add(h.graph, "inside", "QueueDequeueV2", {{handle, 0}},
          {{"component_types", Queued::Types{DataType::kFloat}}}, {body});
  add(h.graph, "watch", "NoOp", {}, {}, {inside});
  h.binary("b", "Mul", h.a, out);
  CHECK(!contains(
      groups(h.graph, {"b"}, {"put", "watch"}, {.may_wait = Queued::may_wait}),
      "a b"));
}

TEST_CASE("groups: a group does not wait for a device that waits for it") {
  struct Cut : Elements {
    Cut() {
      AttrMap attrs = {{"tensor_name", "there"},
                       {"send_device", "/device:CPU:0"},
                       {"send_device_incarnation", int64_t{0}},
                       {"recv_device", "/device:CPU:1"}};
      add(graph, "send", "_Send", {{a, 0}}, attrs);
      attrs.insert_or_assign("tensor_name", "back");
      attrs.insert_or_assign("tensor_type", DataType::kFloat);
      come = square("come", {add(graph, "recv", "_Recv", {}, attrs), 0});
    }
    Node* a = unary("a", x);
    Node* come = nullptr;
  };
  Cut g;
  Node* b = g.binary("b", "Mul", g.a, g.come);
  CHECK(groups(g.graph, {"b"}, {"send"}).empty());
  // If nothing is sent: what comes may be dead, and a is not.
  CHECK(groups(g.graph, {"a", "b"}) == "");
  g.unary("c", g.a, "Neg");
  g.unary("d", b);
  const std::string found = groups(g.graph, {"b", "c", "d"}, {"send"});
  CHECK(contains(found, "a c"));
  CHECK(!contains(found, "a b"));
}

TEST_CASE("groups: a call splits a group, whatever is in its body") {
  Elements g;
  Node* a = g.unary("a", g.x);
  const auto call = [&](const char* name, Node* from) {
    const std::vector<DataType> types = {DataType::kFloat};
    return add(g.graph, name, "_Call", {{from, 0}},
               {{"Tin", types},
                {"Tout", types},
                {"f", FunctionRef{.name = "f", .attrs = {}}},
                {"body", int64_t{0}}});
  };
  call("there", a);
  g.binary("b", "Mul", a, g.square("back", {call("other", g.x), 0}));
  CHECK(groups(g.graph, {"b"}, {"there"}) == "");
}
