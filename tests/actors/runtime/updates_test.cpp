// Updates and gathers of variables in every configuration of the engine: the
// order that control edges impose, and the values that concurrent runs see.
#include <doctest/doctest.h>

#include <vector>

#include "graph/builder/builder.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/sessions.h"
#include "tests/actors/whole_reads.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

void run_targets(Session& session, const std::vector<std::string>& targets) {
  must(session.run({}, {}, targets, within_a_minute()));
}

}  // namespace

TEST_CASE("a gather of a reference reads what was written before") {
  Graph graph;
  const Scope s(graph);
  const Output v =
      ops::reference_variable(s.named("v"), DataType::kFloat, {3, 2});
  ops::assign(s.named("init"), v,
              Tensor::of<float>({3, 2}, {0, 1, 10, 11, 20, 21}));
  const Tensor rows = Tensor::vector<int32_t>({2, 0});
  const Output changed = s.named("changed").op(
      "ScatterAdd", {v, rows, Tensor::of<float>({2, 2}, {1, 1, 2, 2})});
  s.named("after").op("Gather", {changed, rows});
  const Output before =
      s.named("before").op("GatherV2", {v, rows, Tensor::scalar<int32_t>(0)});
  s.with_control_dependencies({before}).named("then").op(
      "ScatterMul", {v, rows, Tensor::scalar<float>(0)});
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    Tensor value = must_run(*session, {}, {"after"})[0];
    CHECK(identical(value, Tensor::of<float>({2, 2}, {21, 22, 2, 3})));
    value = must_run(*session, {}, {"before", "then"})[0];
    CHECK(identical(value, Tensor::of<float>({2, 2}, {21, 22, 2, 3})));
    value = must_run(*session, {}, {"v"})[0];
    CHECK(identical(value, Tensor::of<float>({3, 2}, {0, 0, 10, 11, 0, 0})));
  }
}

TEST_CASE("concurrent sparse steps and gathers see whole rows") {
  constexpr int64_t kRows = 512, kColumns = 64;
  constexpr int kRuns = 40;
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, {kRows, kColumns});
  ops::assign(s.named("init"), v,
              ops::fill(s, Tensor::of<int64_t>({2}, {kRows, kColumns}),
                        Tensor::scalar(1.0f)));
  const Tensor indices = Tensor::vector<int32_t>({7, 300, 7});
  const Output twos = ops::fill(s, Tensor::of<int64_t>({2}, {3, kColumns}),
                                Tensor::scalar(2.0f));
  s.named("add").op("ResourceScatterAdd", {v.handle, indices, twos});
  const Output rows =
      s.op("ResourceGather", {v.handle, Tensor::vector<int32_t>({7})},
           {{"dtype", DataType::kFloat}});
  ops::reduce_min(s.named("least"), rows, {0, 1});
  ops::reduce_max(s.named("most"), rows, {0, 1});
  REQUIRE(s.status().ok());
  expect_whole_reads(graph, 2, kRuns, [](Session& session) {
    CHECK(must(must_run(session, {}, {"least"})[0].item<float>()) ==
          1 + 2 * 2 * 2 * kRuns);
  });
}

TEST_CASE("a run that was given up does not change restored variables") {
  for (const bool is_handle : {true, false}) {
    INFO(is_handle);
    Graph graph;
    const Scope s(graph);
    const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {});
    const Output slow = test_block(s, x);
    if (is_handle) {
      const ops::Variable v = ops::variable(s.named("v"), DataType::kFloat, {});
      ops::assign(s.named("late"), v, slow);
      ops::assign(s.named("restore"), v, 7.0f);
      ops::read(s.named("read"), v);
    } else {
      const Output v =
          ops::reference_variable(s.named("v"), DataType::kFloat, {});
      ops::assign(s.named("late"), v, slow);
      ops::assign(s.named("restore"), v, 7.0f);
      ops::identity(s.named("read"), v);
    }
    REQUIRE(s.status().ok());
    SessionOptions options;
    options.workers = 2;
    auto first = make_session(options, graph);
    options.state = first->shared_state();
    const auto second = make_session(options, graph);
    (void)must(first->make_callable({"x"}, {}, {"late"}));
    {
      Blockade blockade;
      RunOptions run;
      run.timeout = std::chrono::milliseconds(50);
      const Status status =
          first->run({{"x", Tensor::scalar(1.0f)}}, {}, {"late"}, run).status();
      CHECK(status.code() == Code::kDeadlineExceeded);
      blockade.until_begun(1);
      run_targets(*second, {"restore"});
    }
    first.reset();  // when its last kernel has ended
    CHECK(must(must_run(*second, {}, {"read"})[0].item<float>()) == 7);
  }
}
