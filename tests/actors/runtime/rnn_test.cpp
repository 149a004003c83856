// Recurrent networks at run time: TensorFlow's values, and the effects of
// sequence lengths, dropout and functions of the caller's own.
#include "graph/builder/rnn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/actors/program.h"
#include "tests/actors/recorded_rnn.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::must;

namespace {

constexpr int64_t kBatch = 3, kDepth = 2, kUnits = 3;

// A recorded case, and the program that is to compute it.
struct Recorded : Program {
  explicit Recorded(const char* name)
      : known(read_recorded_rnns().at(name)),
        x(input("x", DataType::kFloat, known.at("x").shape())) {
    if (!known.contains("lengths")) return;
    std::vector<int32_t> values;
    for (const float value : known.at("lengths").flat<float>())
      values.push_back(int32_t(value));
    lengths = Tensor::of<int32_t>({kBatch}, std::span<const int32_t>(values));
  }

  Outputs initial_state() const {
    Outputs state;
    for (int i = 0; known.contains(fmt::format("initial_{}", i)); ++i)
      state.push_back(ops::constant(s, known.at(fmt::format("initial_{}", i))));
    return state;
  }

  // Runs with the recorded variables, of which there must be no others, and
  // compares what comes out.
  void check(const std::map<std::string, Output>& results) {
    Outputs load;
    std::set<std::string> names;
    for (const ScopedVariable& variable : vars.variables()) {
      names.insert(variable.name());
      CAPTURE(variable.name());
      REQUIRE(known.contains(variable.name()));
      load.push_back(variable.assign(s, known.at(variable.name())));
    }
    for (const auto& entry : known)
      CHECK_MESSAGE(
          (!contains(entry.first, "rnn/") || names.contains(entry.first)),
          entry.first);
    const Output loaded = ops::group(s.named("load"), load);
    must(s.status());
    for (const SessionOptions& options : configurations()) {
      INFO(describe(options));
      const auto session = make_session(options, graph);
      must(session->run({}, {}, {loaded.name()}, within_a_minute()));
      for (const auto& result : results) {
        const std::string& name = result.first;
        const Output& output = result.second;
        CAPTURE(name);
        const Tensor value =
            must_run(*session, {{"x", known.at("x")}}, {output.name()})[0];
        CHECK(value.shape() == known.at(name).shape());
        CHECK(output.shape().accepts(value.shape()));
        const auto expected = elements<float>(known.at(name));
        const auto computed = elements<float>(value);
        REQUIRE(computed.size() == expected.size());
        for (size_t i = 0; i < expected.size(); ++i)
          CHECK(computed[i] == doctest::Approx(expected[i]).epsilon(1e-5));
      }
    }
  }

  void check(const RnnResult& result) {
    std::map<std::string, Output> results{{"outputs", result.outputs}};
    int i = 0;
    for (const Output& part : result.state)
      results[fmt::format("state_{}", i++)] = part;
    check(results);
  }

  RecordedRnn known;
  VariableScope vars;
  Output x;
  Tensor lengths;
};

// A cell that adds its input to its state, and says how often it ran.
class AddingCell final : public RnnCell {
 public:
  std::vector<StatePart> state() const override { return {{"sum", 1}}; }
  int64_t output_size() const override { return 1; }
  CellFn build(const Scope&, const VariableScope&, int64_t,
               DataType) const override {
    return [](const Scope& in, const Output& x, const Outputs& state) {
      const Output sum = ops::add(in, x, state[0]);
      return CellStep{sum, sum};
    };
  }
};

Tensor batch_of(std::initializer_list<float> values, int64_t rows) {
  return Tensor::of<float>({rows, int64_t(values.size()) / rows, 1}, values);
}

}  // namespace

TEST_CASE("cells compute what TensorFlow's of the same name do") {
  const std::map<const char*, RnnCellPtr> cells = {
      {"basic", basic_rnn_cell({.units = kUnits})},
      {"gru", gru_cell({.units = kUnits})},
      {"lstm", lstm_cell({.units = kUnits})},
      {"lstm_fancy", lstm_cell({.units = 4,
                                .forget_bias = 0.5,
                                .peepholes = true,
                                .cell_clip = 0.4,
                                .projection = kUnits,
                                .projection_clip = 0.3})},
      {"multi",
       multi_rnn_cell({lstm_cell({.units = kUnits}), gru_cell({.units = 2})})}};
  for (const auto& entry : cells) {
    CAPTURE(entry.first);
    Recorded p(entry.first);
    p.check(dynamic_rnn(
        p.s, p.vars, *entry.second, p.x,
        {.sequence_length = p.lengths, .initial_state = p.initial_state()}));
  }
}

TEST_CASE("dynamic_rnn takes inputs with time first, and without lengths") {
  Recorded p("lstm_time_major");
  p.check(
      dynamic_rnn(p.s, p.vars, *lstm_cell({.units = kUnits}), p.x,
                  {.initial_state = p.initial_state(), .time_major = true}));
}

TEST_CASE("bidirectional_dynamic_rnn runs the second cell from the end") {
  Recorded p("bidirectional");
  const BidirectionalResult result = bidirectional_dynamic_rnn(
      p.s, p.vars, *gru_cell({.units = kUnits}), *lstm_cell({.units = 2}), p.x,
      {.sequence_length = p.lengths});
  p.check({{"outputs", result.forward.outputs},
           {"outputs_back", result.backward.outputs},
           {"state_0", result.forward.state[0]},
           {"state_1", result.backward.state[0]},
           {"state_2", result.backward.state[1]}});
}

TEST_CASE("raw_rnn feeds back what its function makes of the outputs") {
  Recorded p("raw");
  const Output moments = ops::constant(p.s, {1, 2, 3});
  const Output zero = ops::fill(p.s, {int64_t{kBatch}, int64_t{kUnits}}, 0.0f);
  const auto column = [&](const Scope& in, int time) {
    return ops::gather(in, p.x, time, 1);
  };
  const auto step = [&](const Scope& in, const Output& time,
                        const RawRnnNow* now) -> RawRnnNext {
    const Output finished = ops::greater_equal(in, time, moments);
    if (now == nullptr)
      return {finished,
              column(in, 0),
              {zero, zero},
              {ops::fill(in, {int64_t{kUnits}}, 0.0f), ops::constant(in, 0.0f)},
              ops::constant(in, 0.0f)};
    const Output row =
        ops::add(in, ops::slice(in, now->output, {0, 0}, {-1, int(kDepth)}),
                 column(in, 1));
    return {finished,
            row,
            now->state,
            {ops::mul(in, now->output, 2), ops::reduce_sum(in, row, 1)},
            ops::add(in, now->loop_state[0], 1)};
  };
  const RawRnnResult result =
      raw_rnn(p.s, p.vars, *lstm_cell({.units = kUnits}), step);
  REQUIRE_MESSAGE(p.s.ok(), p.s.status().to_string());
  p.check({{"emit_0", result.emitted[0].stack(p.s)},
           {"emit_1", result.emitted[1].stack(p.s)},
           {"count", result.loop_state[0]},
           {"state_0", result.state[0]},
           {"state_1", result.state[1]}});
}

TEST_CASE("dynamic_rnn takes sizes that are unknown before the run") {
  Program p;
  const VariableScope vars;
  const Output x = p.input("x", DataType::kFloat, {-1, -1, 1});
  const Output n = p.input("n", DataType::kInt64, {-1});
  const RnnResult r =
      dynamic_rnn(p.s, vars, AddingCell(), x, {.sequence_length = n});
  CHECK(r.outputs.shape() == PartialShape{-1, -1, 1});
  const auto run = [&](const Tensor& xs, const Tensor& ns) {
    return p.run({{"x", xs}, {"n", ns}}, {r.outputs, r.state[0]});
  };
  auto results =
      run(batch_of({1, 2, 3, 4, 5, 6}, 2), Tensor::vector<int64_t>({2, 9}));
  CHECK(elements<float>(results[0]) == std::vector<float>{1, 3, 0, 4, 9, 15});
  CHECK(elements<float>(results[1]) == std::vector<float>{3, 15});
  // What no sequence reaches is there, too.
  results =
      run(batch_of({1, 2, 3, 4, 5, 6}, 2), Tensor::vector<int64_t>({0, -5}));
  CHECK(elements<float>(results[0]) == std::vector<float>(6, 0));
  CHECK(elements<float>(results[1]) == std::vector<float>{0, 0});
  const std::string message =
      p.error({{"x", batch_of({1, 2}, 2)}, {"n", Tensor::vector<int64_t>({1})}},
              r.outputs);
  CAPTURE(message);
  CHECK(contains(message, "not as many sequence lengths as sequences:"));
}

TEST_CASE("bidirectional_dynamic_rnn cuts lengths beyond the inputs") {
  const auto cell = [] { return AddingCell(); };
  for (const DataType dtype : {DataType::kInt32, DataType::kInt64}) {
    for (const bool time_major : {false, true}) {
      CAPTURE(dtype_name(dtype));
      CAPTURE(time_major);
      Program p;
      const VariableScope vars;
      const Output x = p.input("x", DataType::kFloat, {-1, -1, 1});
      const Output n = p.input("n", dtype, {-1});
      const BidirectionalResult r = bidirectional_dynamic_rnn(
          p.s, vars, cell(), cell(), x,
          {.sequence_length = n, .time_major = time_major});
      const Tensor xs = time_major
                            ? Tensor::of<float>({3, 2, 1}, {1, 4, 2, 5, 3, 6})
                            : batch_of({1, 2, 3, 4, 5, 6}, 2);
      const Tensor ns = dtype == DataType::kInt32
                            ? Tensor::vector<int32_t>({2, 9})
                            : Tensor::vector<int64_t>({2, int64_t{1} << 40});
      const auto results = p.run({{"x", xs}, {"n", ns}},
                                 {r.forward.outputs, r.backward.outputs,
                                  r.forward.state[0], r.backward.state[0]});
      using Values = std::vector<float>;
      CHECK(
          elements<float>(results[0]) ==
          (time_major ? Values{1, 4, 3, 9, 0, 15} : Values{1, 3, 0, 4, 9, 15}));
      CHECK(elements<float>(results[1]) == (time_major
                                                ? Values{3, 15, 2, 11, 0, 6}
                                                : Values{3, 2, 0, 15, 11, 6}));
      CHECK(elements<float>(results[2]) == Values{3, 15});
      CHECK(elements<float>(results[3]) == Values{3, 15});
    }
  }
}

TEST_CASE("dynamic_rnn leaves the state as it was if the inputs have no time") {
  Program p;
  const Output x = p.input("x", DataType::kFloat, {2, -1, 1});
  const RnnResult r =
      dynamic_rnn(p.s, VariableScope(), AddingCell(), x,
                  {.initial_state = ops::fill(p.s, {2, 1}, 7.0f)});
  const auto results = p.run({{"x", Tensor::make(DataType::kFloat, {2, 0, 1})}},
                             {r.outputs, r.state[0]});
  CHECK(results[0].shape() == Shape{2, 0, 1});
  CHECK(elements<float>(results[1]) == std::vector<float>{7, 7});
}

TEST_CASE("a network is shared by asking for its variables again") {
  Program p;
  const VariableScope vars;
  const RnnCellPtr cell = gru_cell({.units = 2});
  const Output x = p.input("x", DataType::kFloat, {1, 2, 2});
  const RnnResult a = dynamic_rnn(p.s, vars, *cell, x);
  const RnnResult b =
      dynamic_rnn(p.s, vars.with_reuse(Reuse::kAlways), *cell, x);
  const Output init = vars.initialize(p.s.named("init"));
  must(p.s.status());
  CHECK(vars.variables().size() == 4);
  const auto session = make_session({}, p.graph);
  must(session->run({}, {}, {init.name()}, within_a_minute()));
  const auto results =
      must_run(*session, {{"x", Tensor::of<float>({1, 2, 2}, {1, 2, 3, 4})}},
               {a.outputs.name(), b.outputs.name()});
  CHECK(elements<float>(results[0]) == elements<float>(results[1]));
}

TEST_CASE("dropout keeps what it is told to, at each moment anew or for all") {
  constexpr int64_t kWide = 1000, kMoments = 3;
  for (const bool variational : {false, true}) {
    CAPTURE(variational);
    Program p;
    const Output keep =
        p.input("keep", DataType::kFloat, PartialShape::scalar());
    class Passing final : public RnnCell {
     public:
      std::vector<StatePart> state() const override {
        return {{"h", kWide}, {"c", kWide, true}};
      }
      int64_t output_size() const override { return kWide; }
      CellFn build(const Scope&, const VariableScope&, int64_t,
                   DataType) const override {
        return [](const Scope&, const Output& x, const Outputs& state) {
          return CellStep{x, state};
        };
      }
    };
    const RnnCellPtr cell = dropout_cell(
        std::make_shared<Passing>(),
        {.output_keep = keep, .state_keep = 0.5, .variational = variational});
    const Output x = ops::fill(p.s, {1, int(kMoments), int(kWide)}, 1.0f);
    const Output h = ops::fill(p.s, {1, int(kWide)}, 1.0f);
    const RnnResult r =
        dynamic_rnn(p.s, VariableScope(), *cell, x, {.initial_state = {h, h}});
    SessionOptions options;
    options.seed = 5;
    const auto results = p.run({{"keep", Tensor::scalar(0.25f)}},
                               {r.outputs, r.state[0], r.state[1]}, options);
    const std::vector<float> all = elements<float>(results[0]);
    std::vector<std::vector<float>> moments;
    for (int64_t t = 0; t < kMoments; ++t)
      moments.emplace_back(all.begin() + t * kWide,
                           all.begin() + (t + 1) * kWide);
    for (const auto& moment : moments) {
      const auto kept = std::ranges::count(moment, 4.0f);
      CHECK(kept + std::ranges::count(moment, 0.0f) == kWide);
      CHECK(kept > 180);  // five deviations of 250
      CHECK(kept < 320);
    }
    CHECK((moments[0] == moments[1]) == variational);
    CHECK((moments[1] == moments[2]) == variational);
    // Kept three times in a row, or by one mask.
    const std::vector<float> h_last = elements<float>(results[1]);
    const auto alive = kWide - std::ranges::count(h_last, 0.0f);
    CHECK(std::ranges::count(h_last, 8.0f) == alive);
    CHECK((alive > 400) == variational);
    // The memory is left alone.
    CHECK(elements<float>(results[2]) == std::vector<float>(kWide, 1));
  }
}

TEST_CASE("dropout that keeps all adds no op") {
  Program p;
  const Output x = ops::fill(p.s, {1, 2, 1}, 1.0f);
  dynamic_rnn(p.s, VariableScope(),
              *dropout_cell(std::make_shared<AddingCell>(), {}), x);
  must(p.s.status());
  for (const Node* node : p.graph.nodes()) CHECK(node->op() != "RandomUniform");
}
