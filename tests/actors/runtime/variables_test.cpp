// Variables in every configuration of the engine: when they are read, what
// outlives a step, who shares it, and what concurrent runs see.
#include <doctest/doctest.h>

#include <vector>

#include "actors/shared_state.h"
#include "devices/state/variable.h"
#include "graph/builder/builder.h"
#include "tests/actors/pending.h"
#include "tests/actors/sessions.h"
#include "tests/actors/whole_reads.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

std::vector<SessionOptions> all_configurations() {
  std::vector<SessionOptions> all = configurations();
  for (const char* devices : {"cpu:2", "cpu:3"}) {
    SessionOptions& options = all.emplace_back();
    options.devices = devices;
    options.scatter = 7;
  }
  return all;
}

void run_targets(Session& session, const std::vector<std::string>& targets) {
  must(session.run({}, {}, targets, within_a_minute()));
}

template <class T>
T fetch_one(Session& session, const std::string& name) {
  return must(must_run(session, {}, {name})[0].item<T>());
}

Status status_of(Session& session, const std::string& fetch) {
  return session.run({}, {fetch}, {}, within_a_minute()).status();
}

// "init", "add" and "read" of a variable of both kinds, by "h_" and "r_".
Graph counters() {
  Graph graph;
  const Scope s(graph);
  const ops::Variable h =
      ops::variable(s.named("h"), DataType::kInt32, PartialShape::scalar());
  ops::assign(s.named("h_init"), h, 10);
  ops::assign_add(s.named("h_add"), h, 3);
  ops::read(s.named("h_read"), h);
  const Output r = ops::reference_variable(s.named("r"), DataType::kInt32,
                                           PartialShape::scalar());
  ops::assign(s.named("r_init"), r, 10);
  ops::assign_add(s.named("r_add"), r, 3);
  ops::identity(s.named("r_read"), r);
  REQUIRE(s.status().ok());
  return graph;
}

}  // namespace

TEST_CASE("a variable keeps its value from run to run") {
  const Graph graph = counters();
  for (const SessionOptions& options : all_configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    for (const std::string kind : {"h", "r"}) {
      run_targets(*session, {kind + "_init"});
      run_targets(*session, {kind + "_add"});
      run_targets(*session, {kind + "_add"});
      CHECK(fetch_one<int32_t>(*session, kind + "_read") == 16);
    }
    CHECK(fetch_one<int32_t>(*session, "r") == 16);
    CHECK(fetch_one<int32_t>(*session, "r_add") == 19);
  }
}

TEST_CASE("a variable that was never assigned is named in the error") {
  const auto session = make_session({}, counters());
  for (const std::string fetch : {"h_read", "r_read", "r", "r_add"}) {
    const Status status = status_of(*session, fetch);
    CHECK(status.code() == Code::kFailedPrecondition);
    CHECK(status.message().find(std::string("variable \"") + fetch[0] +
                                "\" of int32[] is not initialized") !=
          std::string::npos);
  }
}

TEST_CASE("a reference is read when its reader fires, and not before") {
  Graph graph;
  const Scope s(graph);
  const Output v = ops::reference_variable(s.named("v"), DataType::kInt32,
                                           PartialShape::scalar());
  ops::assign(s.named("init"), v, 1);
  const Output assigned = ops::assign(s.named("assigned"), v, 5);
  ops::identity(s.named("after").with_control_dependencies({assigned}), v);
  // Both are read when the sum fires.
  ops::add(s.named("both"), v, ops::assign_add(s, v, 1));
  // The value of the moment, whatever comes later.
  const Output before = ops::identity(s.named("before"), v);
  const Output changed =
      ops::assign_add(s.with_control_dependencies({before}), v, 100);
  ops::add(s.named("old"), before, ops::mul(s, changed, 0));
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : all_configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    CHECK(fetch_one<int32_t>(*session, "after") == 5);
    CHECK(fetch_one<int32_t>(*session, "both") == 12);
    CHECK(fetch_one<int32_t>(*session, "old") == 6);
    CHECK(fetch_one<int32_t>(*session, "v") == 106);
  }
}

TEST_CASE("a loop changes a variable, one trip after the other") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable h =
      ops::variable(s.named("h"), DataType::kInt64, PartialShape::scalar());
  ops::assign(s.named("init"), h, 0);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt64, {});
  const Outputs loop = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output add = ops::assign_add(in, h, v[0]);
        const Scope then = in.with_control_dependencies({add});
        return {ops::add(then, v[0], 1),
                ops::add(in, v[1], ops::read(then, h))};
      },
      {Tensor::scalar<int64_t>(0), Tensor::scalar<int64_t>(0)});
  ops::identity(s.named("sum"), loop[1]);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : all_configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    const Tensor trips = Tensor::scalar<int64_t>(10);
    // The sums of 0..0, 0..1, ... 0..9.
    CHECK(
        must(must_run(*session, {{"n", trips}}, {"sum"})[0].item<int64_t>()) ==
        165);
  }
}

TEST_CASE("references go around loops and through branches") {
  Graph graph;
  const Scope s(graph);
  const Output v = ops::reference_variable(s.named("v"), DataType::kInt32,
                                           PartialShape::scalar());
  ops::assign(s.named("init"), v, 1);
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const OpResult sides = s.op("RefSwitch", {v, p});
  const Output merged = s.op("RefMerge", {ops::assign_add(s, sides[0], 10),
                                          ops::assign_add(s, sides[1], 100)});
  ops::identity(s.named("chosen"), merged);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : all_configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    for (const auto& [side, sum] : {std::pair(false, 11), {true, 111}}) {
      const auto out =
          must_run(*session, {{"p", Tensor::scalar(side)}}, {"chosen"});
      CHECK(must(out[0].item<int32_t>()) == sum);
    }
  }
}

TEST_CASE("calls of a function share its variable") {
  Graph graph;
  const Scope s(graph);
  define_function(
      s, {.name = "count",
          .args = {{"x", DataType::kInt32, PartialShape::scalar()}},
          .results = {{DataType::kInt32, {}}},
          .body = [](const Scope& in, const Outputs& args) -> Outputs {
            const ops::Variable v = ops::variable(
                in.named("hits"), DataType::kInt32, PartialShape::scalar());
            const Output add = ops::assign_add(in, v, args[0]);
            return {ops::read(in.with_control_dependencies({add}), v)};
          }});
  const ops::Variable hits =
      ops::variable(s.named("hits"), DataType::kInt32, PartialShape::scalar());
  ops::assign(s.named("init"), hits, 0);
  const Output one = ops::identity(s.named("one"), call(s, "count", {1})[0]);
  ops::identity(s.named("two"),
                call(s.with_control_dependencies({one}), "count", {20})[0]);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : all_configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    CHECK(fetch_one<int32_t>(*session, "two") == 21);
    CHECK(fetch_one<int32_t>(*session, "one") == 22);
  }
}

TEST_CASE("sessions that share a state share its variables") {
  const Graph graph = counters();
  auto first = make_session({}, graph);
  SessionOptions options;
  options.state = first->shared_state();
  const auto second = make_session(options, graph);
  const auto apart = make_session({}, graph);
  run_targets(*first, {"h_init"});
  run_targets(*second, {"h_add"});
  CHECK(fetch_one<int32_t>(*first, "h_read") == 13);
  CHECK(status_of(*apart, "h_read").code() == Code::kFailedPrecondition);
  // The state outlives the session that made it.
  REQUIRE(first->close().ok());
  first.reset();
  CHECK(fetch_one<int32_t>(*second, "h_read") == 13);
  options.devices = "cpu:2";
  const Status other = Session::create(options).status();
  CHECK(other.code() == Code::kInvalidArgument);
  CHECK(other.message().find("the shared state is on other devices") !=
        std::string::npos);
}

TEST_CASE("a session without a text of devices has those of its shared state") {
  const Graph graph = counters();
  SessionOptions wide;
  wide.devices = "cpu:2";
  const auto first = make_session(wide, graph);
  SessionOptions options;
  options.state = first->shared_state();
  const auto second = make_session(options, graph);
  run_targets(*first, {"h_init"});
  run_targets(*second, {"h_add"});
  CHECK(fetch_one<int32_t>(*first, "h_read") == 13);
}

TEST_CASE("a reset empties the containers that it names") {
  Graph graph;
  const Scope s(graph);
  for (const std::string container : {"", "kept"}) {
    const std::string name = container.empty() ? "v" : container;
    const ops::Variable v =
        ops::variable(s.named(name), DataType::kInt32, PartialShape::scalar(),
                      {.container = container});
    ops::assign(s.named(name + "_init"), v, 4);
    ops::read(s.named(name + "_read"), v);
  }
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  run_targets(*session, {"v_init", "kept_init"});
  must(session->reset({""}));
  CHECK(status_of(*session, "v_read").code() == Code::kFailedPrecondition);
  CHECK(fetch_one<int32_t>(*session, "kept_read") == 4);
  run_targets(*session, {"v_init"});
  CHECK(fetch_one<int32_t>(*session, "v_read") == 4);
  must(session->reset({"", "kept"}));
  CHECK(status_of(*session, "kept_read").code() == Code::kFailedPrecondition);
}

TEST_CASE("each of many unordered updates is applied once, to one version") {
  // Large enough for a lane, and for shards.
  constexpr int64_t kSize = 1 << 17;
  constexpr int kRuns = 40;
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kInt32, PartialShape({kSize}));
  const Output ones =
      ops::fill(s, Tensor::of<int64_t>({1}, {kSize}), Tensor::scalar(1));
  ops::assign(s.named("init"), v, ops::zeros_like(s, ones));
  ops::assign_add(s.named("add"), v, ones);
  const Output read = ops::read(s, v);
  ops::reduce_min(s.named("least"), read, {0});
  ops::reduce_max(s.named("most"), read, {0});
  REQUIRE(s.status().ok());
  expect_whole_reads(graph, 3, kRuns, [](Session& session) {
    CHECK(fetch_one<int32_t>(session, "least") == 3 * kRuns);
  });
}

TEST_CASE("a variable of another type or shape is refused by name") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kInt32, PartialShape({2}));
  const ops::Variable other =
      ops::variable(s.named("other"), DataType::kFloat, PartialShape({2}),
                    {.shared_name = "v"});
  ops::assign(s.named("init"), v, {1, 2});
  ops::read(s.named("as_float"), other);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32);
  ops::assign(s.named("grow"), v, x);
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  run_targets(*session, {"init"});
  Status status = status_of(*session, "as_float");
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().find("variable \"v\" of int32[2] exists, but the node "
                              "asks for one of float[2]") != std::string::npos);
  status = session
               ->run({{"x", Tensor::vector<int32_t>({1, 2, 3})}}, {}, {"grow"},
                     within_a_minute())
               .status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().find("a value of shape [3] does not fit variable "
                              "\"v\" of int32[2]") != std::string::npos);
}

TEST_CASE("an update that is cancelled keeps no reader behind it waiting") {
  using Mode = devices::StateLock::Mode;
  const auto session = make_session({}, counters());
  run_targets(*session, {"h_init"});
  const auto object =
      session->shared_state()->resources().find({"", "variable", "h"});
  auto* const h = dynamic_cast<devices::Variable*>(object.get());
  REQUIRE(h != nullptr);
  // Somebody reads for a long time.
  REQUIRE(h->lock().try_lock(Mode::kShared));
  Callable add = must(session->make_callable({}, {}, {"h_add"}));
  CancelToken token;
  RunOptions cancellable = within_a_minute();
  cancellable.cancel = token;
  std::promise<Status> added;
  add.run_async({}, cancellable, [&](auto answer, RunStats) {
    added.set_value(answer.status());
  });
  while (h->lock().try_lock(Mode::kShared)) {
    h->lock().unlock(Mode::kShared);
    std::this_thread::yield();
  }
  Pending read(*session, {}, {"h_read"}, within_a_minute());
  while (session->counters().waiting < 2) std::this_thread::yield();
  CHECK_FALSE(read.answered());
  token.cancel();
  CHECK(added.get_future().get().code() == Code::kCancelled);
  CHECK(must(must(read.get())[0].item<int32_t>()) == 10);
  h->lock().unlock(Mode::kShared);
}
