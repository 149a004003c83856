#include <algorithm>

#include "graph/builder/builder.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// while (i < n) { ++i; w = change(w) }
struct Loop {
  using Body = std::function<Output(const Scope& in, const Output& w,
                                    const Output& a, const Output& b)>;

  explicit Loop(const Body& change, PartialShape shape = {2, 3}) {
    const Output w =
        ops::placeholder(s.named("w"), DataType::kFloat, std::move(shape));
    const Output a = ops::placeholder(s.named("a"), DataType::kFloat, {4, 2});
    const Output b = ops::placeholder(s.named("b"), DataType::kFloat, {4, 3});
    const Outputs last = while_loop(
        s.named("loop"),
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 10);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in, v[0], 1), change(in, v[1], a, b)};
        },
        {0, w});
    must(s.status());
    result = ops::identity(s.named("result"), last[1]).name();
  }

  // The program after the pass, or none if that left it alone.
  std::optional<Program> summed(std::vector<std::string> fetches = {}) const {
    fetches.push_back(result);
    Program program = program_of(graph, fetches);
    must(remove_identities(program, {}));
    const std::string before = dump(program.graph);
    if (run_pass(sum_products, program)) return program;
    CHECK(dump(program.graph) == before);
    return {};
  }

  Graph graph;
  Scope s{graph};
  std::string result;
};

Output product(const Scope& s, const Output& a, const Output& b) {
  return ops::matmul(s, a, b, {.transpose_a = true});
}

// How many nodes have the op.
int count(const Program& program, std::string_view op) {
  int found = 0;
  for (const Node* node : program.graph.nodes()) found += node->op() == op;
  return found;
}

}  // namespace

TEST_CASE("A loop's sum of products becomes one that puts them off") {
  const Loop loop(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        return ops::add_n(in, {w, product(in, a, b)});
      });
  const auto program = loop.summed();
  REQUIRE(program);
  CHECK(count(*program, "MatMul") == 0);
  CHECK(count(*program, "AddN") == 0);
  const Node* value = program->fetches[0].node;
  CHECK(value->op() == "_ProductSumValue");
  CHECK(value->output_shape(0) == PartialShape({2, 3}));
  const Node* exit = value->inputs()[0].node;
  CHECK(exit->is_exit());
  const Node* choice = exit->inputs()[0].node;
  const Node* merge = choice->inputs()[0].node;
  CHECK(merge->output_dtypes()[0] == DataType::kVariant);
  const Node* start = merge->inputs()[0].node->inputs()[0].node;
  CHECK(start->op() == "_ProductSum");
  CHECK(start->inputs()[0].to_string() == "w:0");
  const Node* add = merge->inputs()[1].node->inputs()[0].node;
  CHECK(add->op() == "_ProductSumAdd");
  CHECK(must(add->attr<bool>("transpose_a")));
  CHECK(!must(add->attr<bool>("transpose_b")));
}

TEST_CASE("What a sum, its products and its Enter wait for, the new ones do") {
  Node* first = nullptr;
  Node* second = nullptr;
  Node* third = nullptr;
  const auto waiting = [&](const Scope& in, const Output& a, Node*& kept) {
    const Output waited = ops::neg(in, a);
    kept = waited.node();
    return in.with_control_dependencies({waited});
  };
  const Loop loop(
      [&](const Scope& in, const Output& w, const Output& a, const Output& b) {
        const Output x = product(waiting(in, a, first), a, b);
        const Output y = product(waiting(in, a, second), a, b);
        return ops::add_n(waiting(in, a, third), {x, w, y});
      });
  const auto program = loop.summed();
  REQUIRE(program);
  std::vector<std::vector<std::string>> waits;
  for (const Node* node : program->graph.nodes()) {
    if (node->op() != "_ProductSumAdd") continue;
    std::vector<std::string>& names = waits.emplace_back();
    for (const Node* control : node->control_inputs())
      names.push_back(control->name());
    std::ranges::sort(names);
  }
  const auto sorted = [](std::vector<std::string> names) {
    std::ranges::sort(names);
    return names;
  };
  REQUIRE(waits.size() == 2);
  CHECK(waits[0] == sorted({first->name(), third->name()}));
  CHECK(waits[1] == sorted({second->name(), third->name()}));
}

TEST_CASE("Several products, and sums by other ops, are put off as well") {
  const Loop three(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        const Output more = ops::add(in, a, a);
        return ops::add_n(in, {product(in, a, b), w, product(in, more, b)});
      });
  const auto program = three.summed();
  REQUIRE(program);
  CHECK(count(*program, "_ProductSumAdd") == 2);
  const Loop added(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        return ops::add(in, product(in, a, b), w);
      });
  CHECK(added.summed());
  // A sum of unlike shapes broadcasts.
  const Loop any(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        return ops::add(in, product(in, a, b), w);
      },
      PartialShape());
  CHECK(!any.summed());
}

TEST_CASE(
    "A sum that is used before the loop's end is made in each iteration") {
  const Loop used(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        const Output scaled = ops::mul(in, b, ops::reduce_sum(in, w));
        return ops::add_n(in, {w, product(in, a, scaled)});
      });
  CHECK(!used.summed());
  const Loop changed(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        return ops::neg(in, ops::add_n(in, {w, product(in, a, b)}));
      });
  CHECK(!changed.summed());
  const Loop twice(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        return ops::add_n(in, {w, w, product(in, a, b)});
      });
  CHECK(!twice.summed());
}

TEST_CASE("A term that is not a product, or is used twice, is not put off") {
  const Loop other(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        return ops::add_n(in, {w, ops::neg(in, product(in, a, b))});
      });
  CHECK(!other.summed());
  const Loop shared(
      [](const Scope& in, const Output& w, const Output& a, const Output& b) {
        const Output made = product(in, a, b);
        return ops::add_n(in, {w, made, made});
      });
  CHECK(!shared.summed());
}
