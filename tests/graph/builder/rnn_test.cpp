// The nodes, shapes and errors of recurrent networks.
#include "graph/builder/rnn.h"

#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"
#include "tests/graph/hand_made.h"

namespace tagflow::graph {

using namespace ops;
using testing::contains;

namespace {

struct Fixture {
  Graph graph;
  Scope s{graph};
  VariableScope vars;
  Output x = placeholder(s.named("x"), DataType::kFloat, {4, -1, 2});

  std::string message() const { return std::string(s.status().message()); }
};

// A cell that a test makes up.
class OwnCell final : public RnnCell {
 public:
  OwnCell(std::vector<StatePart> state, CellFn fn)
      : state_(std::move(state)), fn_(std::move(fn)) {}
  std::vector<StatePart> state() const override { return state_; }
  int64_t output_size() const override { return 2; }
  CellFn build(const Scope&, const VariableScope&, int64_t,
               DataType) const override {
    return fn_;
  }

 private:
  const std::vector<StatePart> state_;
  const CellFn fn_;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "dynamic_rnn knows the types and shapes of its results") {
  const RnnResult r =
      dynamic_rnn(s, vars, *lstm_cell({.units = 3, .projection = 5}), x);
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(r.outputs.shape() == PartialShape{4, -1, 5});
  REQUIRE(r.state.size() == 2);
  CHECK(r.state[0].shape() == PartialShape{4, 3});
  CHECK(r.state[1].shape() == PartialShape{4, 5});
  const Output wide = cast(s, x, DataType::kDouble);
  const BidirectionalResult b = bidirectional_dynamic_rnn(
      s, vars, *gru_cell({.units = 3}), *basic_rnn_cell({.units = 2}), wide);
  REQUIRE_MESSAGE(s.ok(), message());
  CHECK(b.forward.outputs.dtype() == DataType::kDouble);
  CHECK(b.backward.outputs.shape() == PartialShape{4, -1, 2});
  CHECK(validate(graph).ok());
}

TEST_CASE_FIXTURE(Fixture,
                  "dynamic_rnn builds its cell once, however long it runs") {
  dynamic_rnn(s, vars, *gru_cell({.units = 3}), x);
  REQUIRE_MESSAGE(s.ok(), message());
  size_t products = 0;
  for (const Node* node : graph.nodes())
    products += node->op() == "MatMul" ? 1 : 0;
  CHECK(products == 2);
  CHECK(graph.find("rnn/while/LoopCond") != nullptr);
}

TEST_CASE_FIXTURE(Fixture, "the variables of two networks are not mixed up") {
  const RnnCellPtr cell = gru_cell({.units = 3});
  dynamic_rnn(s, vars, *cell, x);
  dynamic_rnn(s, vars.sub_scope("second"), *cell, x);
  dynamic_rnn(s, vars, *cell, x, {.scope = "third"});
  REQUIRE_MESSAGE(s.ok(), message());
  dynamic_rnn(s, vars, *cell, x);
  CHECK(contains(message(), "\"rnn/gru_cell/gates/kernel\" exists already"));
}

TEST_CASE_FIXTURE(
    Fixture, "dynamic_rnn needs inputs of three dimensions and a known size") {
  const RnnCellPtr cell = gru_cell({.units = 3});
  SUBCASE("not two") {
    dynamic_rnn(s, vars, *cell,
                placeholder(s.named("y"), DataType::kFloat, {4, 2}));
    CHECK(message() ==
          "[dynamic_rnn] \"rnn\": the inputs must be floating-point numbers of "
          "three dimensions, of which the last is known, not float[4,2] "
          "(\"y:0\")");
  }
  SUBCASE("not any size") {
    dynamic_rnn(s, vars, *cell, placeholder(s, DataType::kFloat, {4, 2, -1}));
    CHECK(contains(message(), "not float[4,2,?]"));
  }
  SUBCASE("not integers") {
    dynamic_rnn(s, vars, *cell, cast(s, x, DataType::kInt32));
    CHECK(contains(message(), "not int32[4,?,2]"));
  }
  SUBCASE("not an operation") {
    dynamic_rnn(s, vars, *cell, no_op(s));
    CHECK(message() == "[dynamic_rnn] \"rnn\": the inputs are not a tensor");
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "dynamic_rnn takes an integer length for each sequence") {
  const RnnCellPtr cell = gru_cell({.units = 3});
  SUBCASE("not fractions") {
    dynamic_rnn(s, vars, *cell, x, {.sequence_length = {1.5, 1., 1., 1.}});
    CHECK_FALSE(s.ok());
  }
  SUBCASE("not as many as one likes") {
    dynamic_rnn(s, vars, *cell, x, {.sequence_length = {1, 2, 3}});
    CHECK(contains(message(),
                   "the sequence lengths must be int32 or int64 of shape [4], "
                   "not int32[3]"));
  }
}

TEST_CASE_FIXTURE(Fixture, "an initial state is one of the cell") {
  const RnnCellPtr cell = lstm_cell({.units = 3});
  SUBCASE("in number") {
    dynamic_rnn(s, vars, *cell, x, {.initial_state = x});
    CHECK(message() ==
          "[dynamic_rnn] \"rnn\": the initial state has 1 tensors, the state "
          "of the cell 2");
  }
  SUBCASE("in shape") {
    const Output h = placeholder(s.named("h"), DataType::kFloat, {4, 5});
    dynamic_rnn(s, vars, *cell, x, {.initial_state = {h, h}});
    CHECK(message() ==
          "[dynamic_rnn] \"rnn\": c of the initial state must be float[4,3], "
          "not float[4,5] (\"h:0\")");
  }
}

TEST_CASE_FIXTURE(Fixture, "a cell of one's own returns what it says") {
  const auto run = [&](const CellFn& fn) {
    dynamic_rnn(s, vars, OwnCell({{"h", 2}}, fn), x);
    return message();
  };
  const auto with = [](const Output& output, const Outputs& state) {
    return [=](const Scope&, const Output&, const Outputs&) {
      return CellStep{output, state};
    };
  };
  const Output h = placeholder(s.named("h"), DataType::kFloat, {4, 2});
  SUBCASE("no function") {
    CHECK(run({}) == "[dynamic_rnn] \"rnn\": the cell builds no function");
  }
  SUBCASE("too little state") {
    CHECK(run(with(h, {})) ==
          "[dynamic_rnn] \"rnn\": what the cell returns has 0 tensors, the "
          "state of the cell 1");
  }
  SUBCASE("no output") {
    CHECK(run(with({}, h)) ==
          "[dynamic_rnn] \"rnn\": the cell returns no output");
  }
  SUBCASE("an output of another shape") {
    CHECK(run(with(x, h)) ==
          "[dynamic_rnn] \"rnn\": the cell returns an output of shape "
          "[4,?,2], not [4,2]");
  }
}

TEST_CASE_FIXTURE(Fixture, "dynamic_rnn refuses cells of impossible sizes") {
  const auto run = [&](const RnnCellPtr& cell) {
    dynamic_rnn(s, vars, *cell, x);
    return message();
  };
  SUBCASE("without units") {
    CHECK(run(gru_cell({})) == "[gru_cell] a cell has 1 unit or more, not 0");
  }
  SUBCASE("with a projection of less than nothing") {
    CHECK(contains(run(lstm_cell({.units = 1, .projection = -1})),
                   "not 1 and -1"));
  }
  SUBCASE("that clip to less than nothing") {
    CHECK(contains(run(lstm_cell({.units = 1, .cell_clip = -1})),
                   "[lstm_cell] the limits of clipping are not negative"));
  }
  SUBCASE("of no cells") {
    CHECK(run(multi_rnn_cell({})) == "[multi_rnn_cell] there is no cell 0");
  }
  SUBCASE("of a null cell") {
    CHECK(run(multi_rnn_cell({gru_cell({.units = 1}), nullptr})) ==
          "[multi_rnn_cell] there is no cell 1");
  }
  SUBCASE("that drop a null cell") {
    CHECK(run(dropout_cell(nullptr, {})) == "[dropout_cell] there is no cell");
  }
  SUBCASE("that keep more than all") {
    CHECK(contains(
        run(dropout_cell(gru_cell({.units = 1}), {.output_keep = 1.5})),
        "[dropout_cell] output_keep is the probability of keeping "
        "a value, above 0 and at most 1, not "));
  }
}

TEST_CASE_FIXTURE(Fixture, "raw_rnn says what its function gets wrong") {
  const Output h = placeholder(s.named("h"), DataType::kFloat, {4, 3});
  const Output input = placeholder(s.named("in"), DataType::kFloat, {4, 2});
  const Output flags = placeholder(s.named("flags"), DataType::kBool, {4});
  const auto run = [&](const RawRnnFn& fn) {
    raw_rnn(s, vars, *gru_cell({.units = 3}), fn);
    return message();
  };
  const auto always = [](RawRnnNext next) {
    return
        [next](const Scope&, const Output&, const RawRnnNow*) { return next; };
  };
  SUBCASE("there is none") {
    CHECK(run({}) == "[raw_rnn] \"rnn\": there is no function");
  }
  SUBCASE("which sequences are finished") {
    CHECK(run(always({h, input, h, {}, {}})) ==
          "[raw_rnn] \"rnn\": which sequences are finished must be bools of "
          "[batch], not float[4,3] (\"h:0\")");
  }
  SUBCASE("the input") {
    CHECK(contains(run(always({flags, x, h, {}, {}})),
                   "the first input must be floating-point numbers of [batch, "
                   "size], of a size that is known, not float[4,?,2]"));
  }
  SUBCASE("the state") {
    CHECK(contains(run(always({flags, input, input, {}, {}})),
                   "h of the first state must be float[4,3], not float[4,2]"));
  }
  SUBCASE("an example of what is emitted") {
    CHECK(contains(run(always({flags, input, h, x, {}})),
                   "the shape of emitted tensors must be known"));
  }
  SUBCASE("what is emitted") {
    CHECK(contains(run([&](const Scope&, const Output&, const RawRnnNow* now) {
                     RawRnnNext next{flags, input, h, {}, {}};
                     if (now == nullptr) next.emit = {input, input};
                     return next;
                   }),
                   "0 tensors are emitted, at first there were 2"));
  }
  SUBCASE("variables that come and go") {
    CHECK(contains(run([&](const Scope&, const Output&, const RawRnnNow* now) {
                     RawRnnNext next{flags, input, h, {}, {}};
                     if (now == nullptr) next.loop_state = input;
                     return next;
                   }),
                   "the body returns no loop_state[0]"));
  }
}

}  // namespace tagflow::graph
