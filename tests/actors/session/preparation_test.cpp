// What limits the preparation of a signature: its time, its cancellation, and
// the number of nodes.
#include <doctest/doctest.h>

#include <future>

#include "actors/plan/distribute.h"
#include "tests/actors/function_graph.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph::testing;

namespace {

// y: a function of 10 nodes, four times.
FunctionGraph calls() {
  FunctionGraph g;
  FunctionDef ten =
      function("ten", {"n: int32"}, {"r: int32"}, {}, {{"r", "sum_8:z:0"}});
  std::string last = "n";
  for (int i = 0; i < 9; ++i) {
    const std::string name = fmt::format("sum_{}", i);
    ten.nodes.push_back(body_int(name, "Add", last, "n"));
    last = name + ":z:0";
  }
  g.define(ten);
  g.add({int_placeholder("x"), body_node("a", "ten", {"x"}),
         body_node("b", "ten", {"a"}), body_node("c", "ten", {"b"}),
         body_node("y", "ten", {"c"})});
  return g;
}

const std::vector<Feed> kFeeds = {{"x", Tensor::scalar(1)}};

RunOptions in_a_nanosecond() {
  RunOptions options;
  options.timeout = std::chrono::nanoseconds(1);
  return options;
}

Status run_async(Session& session, const RunOptions& options) {
  std::promise<Status> answer;
  session.run_async(kFeeds, {"y"}, {}, options, [&](auto result, RunStats) {
    answer.set_value(result.status());
  });
  return answer.get_future().get();
}

}  // namespace

TEST_CASE("the time-out of a run ends the compilation of its signature") {
  const auto session = calls().session({});
  const auto check_late = [](const Status& status) {
    CHECK(contains(message_of(status, Code::kDeadlineExceeded),
                   "[session] the time-out of 1e-09 s passed while "));
  };
  check_late(session->run(kFeeds, {"y"}, {}, in_a_nanosecond()).status());
  check_late(run_async(*session, in_a_nanosecond()));
  check_late(
      session->make_callable({"x"}, {"y"}, {}, in_a_nanosecond()).status());
  SessionOptions options;
  options.timeout = std::chrono::nanoseconds(1);
  const auto hasty = calls().session(options);
  check_late(hasty->make_callable({"x"}, {"y"}).status());
  check_late(hasty->explain({"x"}, {"y"}).status());
  // Nothing of it stays.
  CHECK(session->counters().signatures == 0);
  CHECK(must(run_int(*session, 1)) == 10'000);
}

TEST_CASE("a cancellation ends the compilation of a signature") {
  const auto session = calls().session({});
  RunOptions options;
  options.cancel.emplace();
  options.cancel->cancel();
  const auto check_cancelled = [](const Status& status) {
    CHECK(contains(message_of(status, Code::kCancelled),
                   "[session] the run was cancelled while "));
  };
  check_cancelled(session->run(kFeeds, {"y"}, {}, options).status());
  check_cancelled(run_async(*session, options));
  check_cancelled(session->make_callable({"x"}, {"y"}, {}, options).status());
  CHECK(must(run_int(*session, 1)) == 10'000);
}

TEST_CASE("a session refuses a run that needs more nodes than it allows") {
  SessionOptions options;
  options.max_nodes = 44;
  // 5 nodes, and four times 10.
  const auto small = calls().session(options);
  CHECK(contains(
      message_of(small->run(kFeeds, {"y"}).status(), Code::kResourceExhausted),
      "with its functions expanded the graph has more than 44 "
      "nodes, the limit: ten \"a\", which calls \"ten\", becomes "
      "10"));
  // What needs less of the graph runs.
  CHECK(must(run_int(*small, 1, "a")) == 10);
  options.max_nodes = 13;
  CHECK(contains(
      message_of(calls().session(options)->run(kFeeds, {"x"}).status(),
                 Code::kResourceExhausted),
      "[graph] 14 nodes, those of functions included, are over the limit of "
      "13"));
  options.max_nodes = 0;
  CHECK(message_of(Session::create(options).status(), Code::kInvalidArgument) ==
        "[session] max_nodes must be at least 1, but is 0");
}
