// Traces of what other processes have recorded.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>

#include "actors/watch/trace.h"

namespace tagflow::actors {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// One frame of a device, in which a node fires at these times, for 5 ns each,
// on a thread of that number.
TracePart part_of(const std::string& device, steady_clock::time_point start,
                  uint64_t thread, std::initializer_list<int64_t> times) {
  TracePart part;
  part.start = start;
  TracePlan& plan = part.plans.emplace_back();
  plan.device = device;
  plan.nodes.push_back({"n", "Neg", false, false, false, {}});
  part.frames.push_back({&plan, {}, {}});
  TracePart::Track& track = part.tracks.emplace_back();
  track.thread = thread;
  for (const int64_t time : times)
    track.events.push_back({TraceEvent::kNode, time, time + 5, plan.device,
                            plan.frame, devices::Tag(), plan.nodes.data()});
  return part;
}

}  // namespace

TEST_CASE("what other processes record has the times of this one's trace") {
  Trace trace;
  const auto now = steady_clock::now();
  trace.add_part("a", part_of("A", now + nanoseconds(1000), 1, {0, 10}));
  trace.add_part("b", part_of("B", now + nanoseconds(5000), 1, {0}));
  const auto tracks = trace.tracks();
  REQUIRE(tracks.size() == 2);  // two processes may have equal threads
  REQUIRE(tracks[0].size() == 2);
  REQUIRE(tracks[1].size() == 1);
  CHECK(tracks[0][1].begin - tracks[0][0].begin == 10);
  CHECK(tracks[0][1].end - tracks[0][1].begin == 5);
  CHECK(tracks[1][0].begin - tracks[0][0].begin == 4000);
  CHECK(tracks[1][0].device == "B");
  CHECK(tracks[1][0].node->name == "n");
  REQUIRE(trace.frames().size() == 2);
  CHECK(trace.frames()[1].plan->device == "B");
  CHECK(trace.dropped() == 0);
}

TEST_CASE("parts of one process have one track for each of its threads") {
  Trace trace;
  const auto now = steady_clock::now();
  trace.add_part("a", part_of("A", now + nanoseconds(2000), 1, {0, 10}));
  trace.add_part("a", part_of("A", now + nanoseconds(1000), 1, {0, 1005}));
  trace.add_part("a", part_of("A", now, 2, {0}));
  const auto tracks = trace.tracks();
  REQUIRE(tracks.size() == 2);
  REQUIRE(tracks[0].size() == 4);
  for (size_t i = 1; i < 4; ++i)
    CHECK(tracks[0][i].begin > tracks[0][i - 1].begin);
}

TEST_CASE("what seems to be before the trace was made begins with it") {
  Trace trace;
  const auto now = steady_clock::now();
  TracePart part = part_of("A", now - std::chrono::hours(1), 1, {0, 10});
  part.launches.push_back({"A", {}, "n", 0, 3, 4});
  trace.add_part("a", std::move(part));
  CHECK(trace.tracks()[0][1].begin == 0);
  CHECK(trace.tracks()[0][1].end == 0);
  CHECK(trace.launches()[0].begin == 0);
}

TEST_CASE("a trace has room for its words, less the events of its parts") {
  Trace trace(2000);  // two blocks
  const size_t all = trace.room();
  CHECK(all >= 2000);
  const auto now = steady_clock::now();
  trace.add_part("a", part_of("A", now, 1, {0, 10}));
  CHECK(trace.room() == all - 2);
  TracePart part = part_of("A", now, 1, {});
  part.tracks[0].events.resize(all);
  part.dropped = 7;
  trace.add_part("a", std::move(part));
  CHECK(trace.room() == 0);
  trace.add_part("a", TracePart::missing());
  CHECK(trace.dropped() == 8);
}

}  // namespace tagflow::actors
