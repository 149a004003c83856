// Pipelines whose allocations fail.
#pragma once

#include "graph/fault.h"
#include "tests/actors/session/pipeline_graph.h"
#include "tests/failing_new.h"

namespace tagflow::actors {

// Each allocation of three runs for elements fails in turn: no run waits in
// vain. The session is of a PipelineGraph.
inline void check_without_memory(Session& session) {
  const Callable next = must(session.make_callable({}, {"next"}));
  for (int64_t k = 1; k < 300; ++k) {
    initialise(session);
    must(next({}, within_a_minute()));
    Status answers[3];
    FailAllocation fail(k);
    for (Status& answer : answers)
      answer =
          guarded("test", [&] { return next({}, within_a_minute()).status(); });
    fail.stop();
    // A run that the time-out has answered has waited in vain.
    for (const Status& answer : answers)
      CHECK(answer.code() != Code::kDeadlineExceeded);
    if (!fail.failed()) break;
  }
}

}  // namespace tagflow::actors
