#include "apps/tagflow/stepper/trace_recording.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "apps/tagflow/stepper/text.h"
#include "tests/actors/program.h"

using namespace tagflow;
using apps::stepper::record_trace;
using apps::stepper::StepKind;
namespace ta = tagflow::actors;
namespace tg = tagflow::graph;
namespace ops = tagflow::graph::ops;

namespace {

// A loop of two trips, with nodes that are skipped in a third.
void trace_loop(ta::Trace& trace) {
  const ta::Program p;
  const tg::Outputs last = tg::while_loop(
      p.s.named("count"),
      [](const tg::Scope& in, const tg::Outputs& v) {
        return ops::less(in, v[0], 2);
      },
      [](const tg::Scope& in, const tg::Outputs& v) -> tg::Outputs {
        return {ops::add(in.named("more"), v[0], 1)};
      },
      {0});
  REQUIRE(p.s.ok());
  ta::SessionOptions options;
  options.workers = 1;
  options.passes = tg::PassSet::none();
  const auto session = ta::make_session(options, p.graph);
  ta::RunOptions run;
  run.trace = &trace;
  REQUIRE(session->run({}, {last[0].name()}, {}, run).ok());
}

}  // namespace

TEST_CASE("a trace gives the firings of a run, in their order") {
  ta::Trace trace;
  trace_loop(trace);
  const auto [recording, omitted] = record_trace(trace, 1000);
  CHECK(omitted == 0);
  std::vector<std::string> adds;
  const auto scopes = apps::stepper::scope_names(recording);
  for (const auto& step : recording.steps) {
    if (step.node < 0) continue;
    const auto& node = recording.drawing.nodes[size_t(step.node)];
    if (node.op != "AddV2") continue;
    adds.push_back(scopes[size_t(step.scope)].substr(
        scopes[size_t(step.scope)].rfind('/')));
    CHECK((step.kind == StepKind::kSkip) == (adds.size() == 3));
  }
  CHECK(adds == std::vector<std::string>{"/0", "/1", "/2"});
  const std::string text = to_text(recording, {});
  CHECK(text.find("while_context on /job:localhost/task:0 CPU:0/1") !=
        std::string::npos);
  CHECK(text.find("the iteration starts; arrives: ") != std::string::npos);
  CHECK(text.find("more\" is skipped: dead") != std::string::npos);
}

TEST_CASE("the steps of a trace beyond the limit are counted") {
  ta::Trace trace;
  trace_loop(trace);
  const size_t all = record_trace(trace, 1000).recording.steps.size();
  REQUIRE(all > 10);
  const auto [recording, omitted] = record_trace(trace, 10);
  CHECK(recording.steps.size() == 10);
  CHECK(omitted >= all - 10);
}
