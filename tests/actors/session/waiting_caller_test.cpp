// RunOptions::goes_on: a caller that waits is asked whether it wants to.
#include <doctest/doctest.h>

#include <chrono>

#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// A loop that ends when the caller or a time-out ends it.
Output endless_loop(const Scope& s) {
  return while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 1); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::mul(in, v[0], 1)};
      },
      {0})[0];
}

}  // namespace

TEST_CASE("a caller that does not want to wait any more cancels its run") {
  Graph graph;
  const Scope s(graph);
  const Output last = endless_loop(s);
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    const auto session = make_session(options, graph);
    int asked = 0;
    RunOptions run = within_a_minute();
    run.goes_on = [&] { return ++asked < 3; };
    const Status status = session->run({}, {last.name()}, {}, run).status();
    CAPTURE(status.to_string());
    CHECK(status.code() == Code::kCancelled);
    CHECK(status.message().find("by its caller") != std::string_view::npos);
    CHECK(asked == 3);
  }
}

TEST_CASE("a caller that wants to wait does not outlast its time-out") {
  Graph graph;
  const Scope s(graph);
  const Output last = endless_loop(s);
  REQUIRE(s.ok());
  const auto session = make_session({}, graph);
  bool is_asked = false;
  RunOptions run;
  run.timeout = std::chrono::milliseconds(120);
  run.goes_on = [&] { return is_asked = true; };
  CHECK(session->run({}, {last.name()}, {}, run).status().code() ==
        Code::kDeadlineExceeded);
  CHECK(is_asked);
}
