#include <doctest/doctest.h>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Node* predicate(Graph& graph, bool value, std::vector<Node*> control = {}) {
  return add(graph, "p", "Const", {},
             {{"value", Tensor::scalar(value)}, {"dtype", DataType::kBool}},
             std::move(control));
}

bool prune_dead(Program& program) {
  return run_pass(remove_dead_branches, program);
}

}  // namespace

TEST_CASE("dead: a conditional on a constant keeps the branch taken") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* no = add(graph, "no", "Neg", {{branch, 0}});
  Node* yes = add(graph, "yes", "Square", {{branch, 1}});
  add(graph, "merge", "Merge", {{no, 0}, {yes, 0}});
  Program program = program_of(graph, {"merge"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "yes = Square(branch_1)\n"
        "merge_1 = Identity(yes)\n"
        "branch_1 = Identity(x)\n");
  CHECK(!prune_dead(program));
}

TEST_CASE("dead: a Merge's index is known once its one input is there") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, false);
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* merge = add(graph, "merge", "Merge", {{branch, 1}, {branch, 0}});
  add(graph, "index", "Neg", {{merge, 1}});
  Program program = program_of(graph, {"merge", "index"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "index = Neg(merge/index)\n"
        "merge_1 = Identity(branch_1)\n"
        "merge/index = Const(^merge_1)\n"
        "branch_1 = Identity(x)\n");
  CHECK(value_of(program.graph, "merge/index") == 1);
  CHECK(program.fetches[0].to_string() == "merge_1:0");
}

TEST_CASE("dead: a constant predicate's control inputs are still waited for") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* p = predicate(graph, true, {y});
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  add(graph, "after", "NoOp", {}, {}, {branch});
  Program program = program_of(graph, {"branch:1"}, {"after"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph, "branch_1") == "branch_1 = Identity(x, ^y)");
  CHECK(dump(program.graph, "after") == "after = NoOp(^branch_1)");
  CHECK(program.fetches[0].to_string() == "branch_1:0");
}

TEST_CASE("dead: a fetch that is dead for certain stays dead") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  add(graph, "no", "Neg", {{branch, 0}});
  add(graph, "yes", "Neg", {{branch, 1}});
  Program program = program_of(graph, {"no", "yes"});
  CHECK(!prune_dead(program));
  CHECK(dump(program.graph, "branch") == "branch = Switch(x, p)");
}

TEST_CASE("dead: a ControlTrigger's control inputs stay, dead or not") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* no = add(graph, "no", "Neg", {{branch, 0}});
  add(graph, "trigger", "ControlTrigger", {}, {}, {no});
  Program program = program_of(graph, {}, {"trigger"});
  CHECK(!prune_dead(program));
  CHECK(dump(program.graph, "trigger") == "trigger = ControlTrigger(^no)");
}

TEST_CASE("dead: an op with an effect runs though only dead nodes need it") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* printed = add(graph, "printed", "Print", {{x, 0}, {x, 0}});
  Node* branch = add(graph, "branch", "Switch", {{printed, 0}, {p, 0}});
  Node* never = add(graph, "never", "Print", {{branch, 0}, {branch, 0}});
  add(graph, "merge", "Merge", {{never, 0}, {x, 0}});
  Program program = program_of(graph, {"merge"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "printed = Print(x, x)\n"
        "merge_1 = Identity(x)\n");
  REQUIRE(program.targets.size() == 1);
  CHECK(program.targets[0]->name() == "printed");
}

TEST_CASE("dead: a loop on a branch that is never taken goes as a whole") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, false);
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  const Counter c = counter(graph, "loop", {branch, 1}, {branch, 1});
  add(graph, "merge", "Merge", {{branch, 0}, {c.exit, 0}});
  Program program = program_of(graph, {"merge"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "merge_1 = Identity(branch_1)\n"
        "branch_1 = Identity(x)\n");
}

TEST_CASE("dead: a loop with the constant false makes no trip") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  const AttrMap frame = {{"frame_name", "f"}};
  Node* in = add(graph, "in", "Enter", {{x, 0}}, frame);
  Node* merge = add(graph, "merge", "Merge", {{in, 0}, {}});
  Node* p = predicate(graph, false, {merge});
  Node* cond = add(graph, "cond", "LoopCond", {{p, 0}});
  Node* branch = add(graph, "branch", "Switch", {{merge, 0}, {cond, 0}});
  Node* body = add(graph, "body", "Neg", {{branch, 1}});
  Node* next = add(graph, "next", "NextIteration", {{body, 0}});
  must(graph.set_input(merge, 1, {next, 0}));
  add(graph, "out", "Exit", {{branch, 0}});
  Program program = program_of(graph, {"out"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "in = Enter(x)\n"
        "p = Const(^merge_1)\n"
        "cond = LoopCond(p)\n"
        "out = Exit(branch_1)\n"
        "merge_1 = Identity(in)\n"
        "branch_1 = Identity(merge_1, ^cond)\n");
}

TEST_CASE("dead: a Merge loses an input that is always dead") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, false);
  Node* q = placeholder(graph, "q", DataType::kBool, PartialShape::scalar());
  Node* known = add(graph, "known", "Switch", {{x, 0}, {p, 0}});
  Node* open = add(graph, "open", "Switch", {{x, 0}, {q, 0}});
  Node* merge =
      add(graph, "merge", "Merge", {{open, 0}, {known, 1}, {open, 1}});
  Program program = program_of(graph, {"merge"});
  CHECK(prune_dead(program));
  CHECK(dump(program.graph, "merge_1") == "merge_1 = Merge(open, open:1)");
  // If somebody reads the index, it must count as before.
  add(graph, "index", "Neg", {{merge, 1}});
  Program other = program_of(graph, {"merge", "index"});
  CHECK(!prune_dead(other));
}

TEST_CASE("dead: a fetched Switch or Merge output stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* q = placeholder(graph, "q", DataType::kBool, PartialShape::scalar());
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* open = add(graph, "open", "Switch", {{x, 0}, {q, 0}});
  add(graph, "merge", "Merge", {{branch, 0}, {open, 0}, {open, 1}});
  Program program = program_of(graph, {"branch:0", "branch:1"});
  CHECK(!prune_dead(program));
  CHECK(program.fetches[0].to_string() == "branch:0");
  Program counted = program_of(graph, {"merge", "merge:1"});
  CHECK(!prune_dead(counted));
  CHECK(dump(counted.graph, "merge") == "merge = Merge(branch, open, open:1)");
}

// In iteration 0 it gives a dead token, which an Identity would not.
TEST_CASE("dead: a Merge of a dead Enter and a NextIteration stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* dead = add(graph, "dead", "Switch", {{x, 0}, {p, 0}});
  const Counter c = counter(graph, "loop", {x, 0}, {x, 0});
  Node* enter = add(graph, "enter", "Enter", {{dead, 0}},
                    {{"frame_name", std::string("loop")}});
  Node* next = add(graph, "next", "NextIteration", {{c.add, 0}});
  Node* merge = add(graph, "merge", "Merge", {{enter, 0}, {next, 0}});
  Node* last = add(graph, "last", "Switch", {{merge, 0}, {c.cond, 0}});
  add(graph, "out", "Exit", {{last, 0}});
  Program program = program_of(graph, {"out", "loop/exit"});
  prune_dead(program);
  CHECK(dump(program.graph, "merge") == "merge = Merge(enter, next)");
}

TEST_CASE("dead: a Merge that waits for a control input stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* no = add(graph, "no", "Neg", {{branch, 0}});
  add(graph, "merge", "Merge", {{no, 0}, {branch, 1}}, {}, {y});
  Program program = program_of(graph, {"merge"});
  prune_dead(program);
  CHECK(dump(program.graph, "merge") == "merge = Merge(no, branch:1, ^y)");
}

TEST_CASE("dead: a feed stays though nothing needs it any more") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* p = predicate(graph, true);
  Node* no = add(graph, "no", "Switch", {{x, 0}, {p, 0}});
  Node* yes = add(graph, "yes", "Switch", {{y, 0}, {p, 0}});
  add(graph, "merge", "Merge", {{no, 0}, {yes, 1}});
  Program program = program_of(graph, {"merge"}, {}, {"x", "y"});
  CHECK(prune_dead(program));
  REQUIRE(program.feeds.size() == 2);
  for (const Endpoint& feed : program.feeds)
    CHECK(program.graph.owns(feed.node));
  CHECK(program.graph.size() == 4);
}
