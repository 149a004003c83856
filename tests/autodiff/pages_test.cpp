// The code that docs/*.md and autodiff/README.md show.
#include <doctest/doctest.h>

#include <array>

#include "autodiff/forward_rule.h"
#include "autodiff/recompute.h"
#include "autodiff/rule.h"
#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/replicas.h"
#include "graph/builder/builder.h"
#include "graph/builder/rnn.h"
#include "graph/builder/variable_scope.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using namespace tagflow::graph;

TEST_CASE("the guide's rule for an own op is registered") {
  RuleTable table;
  table.add("Exp", [](RuleContext& r) {
    r.set(0, ops::mul(r.scope(), r.grad(), r.conj(r.output())));
  });
  REQUIRE(table.find("Exp") != nullptr);
  const Rule my_rule = table.find("Exp")->rule;
  const Rule other_rule = my_rule;
  RuleTable::global().add("MyOp", my_rule);
  RuleTable::global().add_forward(
      {"MyOp"}, [](ForwardContext& r) { r.set_linear(std::array{0}); });
  RuleTable::global().add_custom("my_gradient", other_rule);
  CHECK(RuleTable::global().find("MyOp") != nullptr);
  // The custom one takes the place of Exp's own.
  check_gradients(
      [](const Scope& s, const Outputs& x) {
        return ops::exp(s.with_attr("_gradient_op_type", "my_gradient"), x[0]);
      },
      {values({2, 3})});
}

TEST_CASE("an exponential has gradients") {
  check_gradients(op_of("Exp"), {values({2, 3}, -1, 1)});
}

TEST_CASE("the guide's calls of recompute() and Save compile and run") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat);
  const auto expensive = [](const Scope& in, const Outputs& inputs) -> Outputs {
    return {ops::exp(in, inputs[0])};
  };
  const auto predicate = [](const Scope& in, const Outputs& v) {
    return ops::less(in, v[0], 10);
  };
  const auto body = [](const Scope& in, const Outputs& v) -> Outputs {
    return {ops::add(in, v[0], 1), ops::exp(in, v[1])};
  };
  const Output y = recompute(s, expensive, {x})[0];
  const Outputs last =
      while_loop(s, predicate, body, {0, y}, {.save = Save::every(100)});
  CHECK(s.status().to_string() == "OK");
  CHECK(last.size() == 2);
}

TEST_CASE("a network is trained by minimize()") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({-1, 4}));
  const Output target =
      ops::placeholder(s.named("t"), DataType::kFloat, PartialShape({-1, 1}));
  const VariableScope vars;
  const Output hidden = layers::dense(
      s, vars, x, {.units = 32, .activation = ops::relu, .name = "hidden"});
  const Output y = layers::dense(s, vars, hidden, {.units = 1, .name = "out"});
  const Output loss = losses::mean_squared_error(s, y, target);
  optimizers::adam(vars, 0.01)
      .minimize(s.named("train"), loss, vars.trainable_variables());
  vars.initialize(s.named("init"));
  CHECK(s.status().to_string() == "OK");
  CHECK(graph.find("train") != nullptr);
  CHECK(graph.find("init") != nullptr);
}

TEST_CASE("cells are run over time") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({2, 5, 3}));
  const Output lengths =
      ops::placeholder(s.named("lengths"), DataType::kInt32, PartialShape({2}));
  const VariableScope vars;
  const RnnCellPtr cell =
      multi_rnn_cell({lstm_cell({.units = 128}), gru_cell({.units = 64})});
  const RnnResult r = dynamic_rnn(s, vars, *cell, x,  // [batch, time, size]
                                  {.sequence_length = lengths});
  CHECK(s.status().to_string() == "OK");
  CHECK(r.outputs.shape() == PartialShape({2, 5, 64}));
}

TEST_CASE("the page's replicas are built") {
  Graph graph;
  const Scope s(graph);
  const VariableScope vars;
  const Outputs part = {ops::constant(s, 1.f), ops::constant(s, 2.f)};
  const auto loss_of = [](const Scope& in, const VariableScope& own,
                          const Output& x) {
    return ops::square(in, ops::sub(in, own.get(in, "w", {}).read(in), x));
  };
  const Replicas replicas(
      s, vars, {.devices = {"/job:worker/task:0", "/job:worker/task:1"}},
      [&](const Replica& r) { return loss_of(r.s, r.vars, part[r.index]); });
  const auto make = [](const VariableScope& own) {
    return optimizers::adam(own, 0.001);
  };
  replicas.minimize(s.named("step"), make);
  replicas.initialize(s.named("init"));
  CHECK_MESSAGE(s.ok(), s.status().to_string());
  for (const char* name : {"step", "init", "w", "replica_1/w"})
    CHECK(graph.find(name) != nullptr);
}
