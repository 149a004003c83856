#include "graph/passes/passes.h"

#include <doctest/doctest.h>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("the table of passes describes each pass, in the order of the enum") {
  CHECK(passes().size() == kNumPasses);
  for (size_t i = 0; i < passes().size(); ++i) {
    CHECK(size_t(passes()[i].pass) == i);
    CHECK(!passes()[i].name.empty());
    CHECK(!passes()[i].summary.empty());
  }
}

TEST_CASE("each pass has a step of the pipeline, in the order of the stages") {
  PassSet found = PassSet::none();
  Stage stage = Stage::kForm;
  for (const PassStep& step : pass_steps()) {
    CHECK(stage <= step.stage);
    stage = step.stage;
    found = found.with(step.pass);
    const bool is_rewrite = stage != Stage::kForm && stage != Stage::kPlan;
    CHECK(is_rewrite == (step.run != nullptr));
  }
  CHECK(found == PassSet());
}

TEST_CASE("run_stage() runs only its passes, in bodies those meant for them") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {64, 64});
  Node* y = add(graph, "y", "Tanh", {{x, 0}});
  Node* z = add(graph, "z", "Neg", {{y, 0}});
  add(graph, "w", "Neg", {{y, 0}});
  Program program = program_of(graph, {"z", "w"});
  program.bodies.push_back(
      std::make_unique<Program>(program_of(graph, {"z", "w"})));
  Graph& body = program.bodies[0]->graph;
  must(run_stage(Stage::kCpu, program, PassSet::only(Pass::kGroup), {}));
  CHECK(program.graph.find(z->name()) == nullptr);
  CHECK(body.find(z->name()) != nullptr);
  must(run_stage(Stage::kCpu, program, PassSet().without(Pass::kGroup), {}));
  CHECK(body.find("w") != nullptr);
  must(run_stage(Stage::kCut, program, PassSet(), {}));
  CHECK(body.find("w") == nullptr);
}

TEST_CASE("a pass set is given by names, by omissions, or as a whole") {
  CHECK(must(PassSet::parse("")) == PassSet());
  CHECK(must(PassSet::parse("all")) == PassSet());
  CHECK(must(PassSet::parse("none")) == PassSet::none());
  const PassSet two = PassSet::only(Pass::kFold).with(Pass::kEdges);
  CHECK(must(PassSet::parse("edges,fold")) == two);
  CHECK(must(PassSet::parse("edges,fold,cse,-cse")) == two);
  CHECK(must(PassSet::parse("-hoist,-cse")) ==
        PassSet().without(Pass::kHoist).without(Pass::kCse));
  for (const PassItem& item : passes()) {
    CHECK(must(PassSet::parse(item.name)) == PassSet::only(item.pass));
    CHECK(PassSet::only(item.pass).to_string() == item.name);
  }
  CHECK(must(PassSet::parse(two.to_string())) == two);
  CHECK(PassSet().to_string() == "all");
  CHECK(PassSet::none().to_string() == "none");
}

TEST_CASE("a pass that does not exist is refused, with those that do") {
  const std::string message =
      message_of(PassSet::parse("fold,magic").status(), Code::kInvalidArgument);
  CHECK(contains(message, "there is no pass \"magic\"; there is \"fold\", "));
  CHECK(contains(message, "\"saved\", \"all\" and \"none\""));
  CHECK(contains(
      message_of(PassSet::parse("fold,").status(), Code::kInvalidArgument),
      "no pass \"\""));
  CHECK(contains(
      message_of(PassSet::parse("-none").status(), Code::kInvalidArgument),
      "no pass \"none\""));
}

TEST_CASE("optimize() runs passes for each other, but none left out") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = constant(graph, "p", Tensor::scalar(true));
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Node* pivot = add(graph, "pivot", "Identity", {{branch, 1}});
  Node* two = number(graph, "two", 2, {pivot});
  Node* sum = add(graph, "sum", "AddV2", {{two, 0}, {two, 0}}, {}, {pivot});
  Node* merge = add(graph, "merge", "Merge", {{branch, 0}, {sum, 0}});
  add(graph, "after", "AddV2", {{merge, 0}, {merge, 0}});
  const Adder adder;
  Program program = program_of(graph, {"after"});
  must(optimize(program, PassSet(), {.evaluator = &adder}));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "after_1 = Const(^x)\n");
  CHECK(value_of(program.graph, "after_1") == 8);
  Program untouched = program_of(graph, {"after"});
  const std::string before = dump(untouched.graph);
  must(optimize(untouched, PassSet::none(), {.evaluator = &adder}));
  CHECK(dump(untouched.graph) == before);
}

TEST_CASE("passes find names for what they make of the longest names") {
  Graph graph;
  const auto long_name = [](char c) { return std::string(kMaxNameLength, c); };
  Node* x = placeholder(graph, "x", DataType::kInt32, {3});
  Node* y = placeholder(graph, "y", DataType::kInt32);
  Node* p = constant(graph, "p", Tensor::scalar(true));
  // Folded, made an Identity, narrowed, opened, hoisted.
  Node* size = add(graph, long_name('f'), "Size", {{x, 0}});
  Node* same = add(graph, long_name('i'), "Cast", {{y, 0}},
                   {{"DstT", DataType::kInt32}}, {size});
  Node* branch = add(graph, long_name('s'), "Switch", {{same, 0}, {p, 0}});
  Node* merge = add(graph, long_name('m'), "Merge", {{branch, 0}, {branch, 1}});
  Node* index = add(graph, "index", "AddV2", {{merge, 1}, {size, 0}});
  const Counter c = counter(graph, "loop", {merge, 0}, {merge, 0});
  Node* negated = add(graph, long_name('h'), "Neg", {{c.limit, 0}});
  must(graph.set_input(c.less, 1, {negated, 0}));
  Program program = program_of(graph, {index->name(), "loop/exit"});
  must(optimize(program, PassSet(), {}));
  must(validate(program.graph));
  std::string made;
  for (const Node* node : program.graph.nodes())
    if (node->name().size() > 100)
      made += fmt::format("{} = {}\n", node->name()[0], node->op());
  CHECK(made ==
        "i = Identity\n"
        "f = Const\n"
        "m = Const\n"
        "h = Neg\n"
        "h = Enter\n");
}

TEST_CASE("optimize() takes a node that waits for very many others") {
  Graph graph;
  constexpr int kNumber = 20'000;
  std::vector<std::string> feeds;
  std::vector<Node*> awaited;
  for (int i = 0; i < kNumber; ++i) {
    feeds.push_back(fmt::format("x{}", i));
    Node* x = placeholder(graph, feeds.back(), DataType::kInt32);
    awaited.push_back(add(graph, fmt::format("i{}", i), "Identity", {{x, 0}}));
    awaited.push_back(x);
  }
  Node* last = add(graph, "n", "Neg", {{awaited[0], 0}}, {}, awaited);
  Program program = program_of(graph, {"n"}, {}, feeds);
  must(optimize(program, PassSet(), {}));
  const Node* node = program.graph.find(last->name());
  CHECK(node->control_inputs().size() == kNumber);
  CHECK(program.graph.size() == kNumber + 1);
}
