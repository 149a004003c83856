// Models whose loops are cut between workers, with their gradients.
#include <doctest/doctest.h>

#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autodiff/gradients.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/rnn_cell.h"
#include "tests/actors/process_cases.h"
#include "tests/net/master/sockets.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::must;

// Two layers of an LSTM over "n" rows of "x", in one loop: the loss, its
// gradients by all weights, and "train", a step of descent. Each layer and its
// weights are on a worker of their own, or all are where placement puts them.
struct Lstm : actors::Program {
  static constexpr int64_t kBatch = 3, kInputs = 4;

  explicit Lstm(bool over_workers) {
    const auto at = [&](const Scope& in, int layer) {
      return over_workers
                 ? in.with_device(fmt::format("/job:worker/task:{}", layer))
                 : in;
    };
    const VariableScope vars = VariableScope().with_initializer(
        initializers::random_uniform(-0.5, 0.5, {.seed = 7, .seed2 = 11}));
    const RnnCellPtr cells[] = {lstm_cell({.units = 5}),
                                lstm_cell({.units = 6})};
    const CellFn steps[] = {cells[0]->build(at(s, 0), vars.sub_scope("first"),
                                            kInputs, DataType::kFloat),
                            cells[1]->build(at(s, 1), vars.sub_scope("second"),
                                            5, DataType::kFloat)};
    const Output n = input("n", DataType::kInt32, PartialShape({}));
    const Output x = input("x", DataType::kFloat, {-1, kBatch, kInputs});
    Outputs first{ops::constant(at(s, 0), 0), ops::constant(at(s, 1), 0.f)};
    for (int k = 0; k < 2; ++k)
      for (const Output& zeros :
           cells[k]->zero_state(at(s, k), int(kBatch), DataType::kFloat))
        first.push_back(zeros);
    const Output loss = while_loop(
        s.named("loop"),
        [&](const Scope& in, const Outputs& v) {
          return ops::less(at(in, 0), v[0], n);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope here = at(in, 0), there = at(in, 1);
          const CellStep lower =
              steps[0](here, ops::gather(here, x, v[0]), {v[2], v[3]});
          const CellStep upper = steps[1](there, lower.output, {v[4], v[5]});
          const Output error = ops::reduce_mean(
              there, ops::square(there, ops::sub(there, upper.output, 0.25f)));
          return {ops::add(here, v[0], 1), ops::add(there, v[1], error),
                  lower.state[0],          lower.state[1],
                  upper.state[0],          upper.state[1]};
        },
        first)[1];
    fetches.push_back(loss.name());
    const auto gradients =
        autodiff::compute_gradients(s, loss, vars.trainable_variables());
    for (const auto& by : gradients)
      fetches.push_back(by.gradient.values.name());
    autodiff::optimizers::sgd(vars, 0.1).apply_gradients(s.named("train"),
                                                         gradients);
    vars.initialize(s.named("init"));
    must(s.status());
  }

  // The fetches of so many steps of training.
  std::vector<std::vector<Tensor>> train(const actors::SessionOptions& options,
                                         std::span<const int> lengths) const {
    const auto session = actors::make_session(options, graph);
    must(session->run({}, {}, {"init"}, actors::within_a_minute()));
    std::vector<std::vector<Tensor>> results;
    for (const int n : lengths) {
      Tensor x = Tensor::make(DataType::kFloat, {n, kBatch, kInputs});
      const auto flat = x.mutable_flat<float>();
      for (size_t i = 0; i < flat.size(); ++i) flat[i] = float(i % 17) / 8 - 1;
      results.push_back(
          must(session->run({{"n", Tensor::scalar(n)}, {"x", x}}, fetches,
                            {"train"}, actors::within_a_minute())));
    }
    return results;
  }

  std::vector<std::string> fetches;  // the loss, and the gradients
};

// If x > 0, doubles it until it is above 100, else negates it: task 1 decides,
// and task 0 computes.
struct Decided : actors::Program {
  Decided() {
    const auto here = [](const Scope& in) {
      return in.with_device("/job:worker/task:0");
    };
    const auto there = [](const Scope& in) {
      return in.with_device("/job:worker/task:1");
    };
    const Output x = input("x", DataType::kFloat, PartialShape({}));
    const Outputs results = cond(
        s.named("way"), ops::greater(there(s), x, 0.f),
        [&](const Scope& branch) {
          return while_loop(
              branch.named("loop"),
              [&](const Scope& in, const Outputs& v) {
                return ops::less_equal(there(in), v[1], 100.f);
              },
              [&](const Scope& in, const Outputs& v) -> Outputs {
                return {ops::add(here(in), v[0], 1),
                        ops::add(here(in), v[1], v[1])};
              },
              {ops::constant(here(branch), 0), ops::identity(here(branch), x)});
        },
        [&](const Scope& branch) -> Outputs {
          return {ops::constant(here(branch), -1), ops::neg(here(branch), x)};
        });
    const Output gradient = autodiff::dense_gradients(s, {results[1]}, {x})[0];
    must(s.status());
    for (const Output& o : {results[0], results[1], gradient})
      fetches.push_back(o.name());
  }

  std::vector<std::string> fetches;  // trips, the result, its gradient by x
};

}  // namespace

TEST_CASE("an LSTM with a layer at each worker learns as in one process") {
  const int lengths[] = {7, 12, 1, 0, 7};
  const Lstm cut(true), whole(false);
  for (const PassSet passes : {PassSet::none(), PassSet()}) {
    CAPTURE(passes.to_string());
    actors::SessionOptions options;
    options.passes = passes;
    const auto expected = whole.train(options, lengths);
    const auto processes = std::make_shared<actors::processes::CountingBackend>(
        over_sockets(2, "cpu:1", 1, 0));
    options.backend = processes;
    const auto results = cut.train(options, lengths);
    CHECK(processes->parts() == 2);
    for (size_t step = 0; step < std::size(lengths); ++step) {
      CAPTURE(step);
      REQUIRE(results[step].size() == 5);  // by two kernels and two biases
      for (size_t i = 0; i < results[step].size(); ++i) {
        CAPTURE(i);
        CHECK(identical(results[step][i], expected[step][i]));
      }
    }
    CHECK(must(results.back()[0].item<float>()) <
          must(results.front()[0].item<float>()));
  }
}

TEST_CASE("a worker decides the trips of a loop in a branch of another one") {
  const Decided p;
  const auto processes = std::make_shared<actors::processes::CountingBackend>(
      over_sockets(2, "cpu:1", 1, 0));
  actors::SessionOptions options;
  options.backend = processes;
  const auto session = actors::make_session(options, p.graph);
  for (const float x : {1.5f, 200.f, -3.f, 0.01f, 99.f}) {
    CAPTURE(x);
    int trips = x > 0 ? 0 : -1;
    float y = x > 0 ? x : -x, gradient = x > 0 ? 1.f : -1.f;
    for (; x > 0 && y <= 100; ++trips) {
      y += y;
      gradient += gradient;
    }
    const auto results =
        actors::must_run(*session, {{"x", Tensor::scalar(x)}}, p.fetches);
    CHECK(processes->parts() == 2);
    CHECK(must(results[0].item<int32_t>()) == trips);
    CHECK(must(results[1].item<float>()) == y);
    CHECK(must(results[2].item<float>()) == gradient);
  }
}

}  // namespace tagflow::net
