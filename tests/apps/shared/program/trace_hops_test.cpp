#include "apps/shared/program/trace_hops.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::apps;
using actors::TraceEvent;
using actors::TraceFrame;
using actors::TraceNode;
using actors::TracePlan;

namespace {

devices::Tag tag(uint64_t instance, int64_t iteration) {
  return {.frame_hi = 0, .frame_lo = instance, .iteration = iteration};
}

TraceEvent activity(uint64_t instance, int64_t iteration, int64_t begin) {
  TraceEvent event;
  event.kind = TraceEvent::kActivity;
  event.begin = begin;
  event.end = begin + 10;
  event.tag = tag(instance, iteration);
  return event;
}

TraceEvent arrival(const TraceNode& node, const devices::Tag& at,
                   int64_t time) {
  TraceEvent event;
  event.kind = TraceEvent::kArrive;
  event.begin = event.end = time;
  event.tag = at;
  event.node = &node;
  return event;
}

// A root (instance 1) that starts two loops (2 and 3) and calls a body (4).
struct Steps {
  Steps() {
    loop.exits = {"exit"};
    other_loop.exits = {"other_exit"};
    body.is_body = true;
    frames = {{&root, tag(1, 0), tag(1, 0)},
              {&loop, tag(2, 0), tag(1, 0)},
              {&other_loop, tag(3, 0), tag(1, 0)},
              {&body, tag(4, 0), tag(1, 0)}};
  }

  TracePlan root, loop, other_loop, body;
  std::vector<TraceFrame> frames;
};

}  // namespace

TEST_CASE("an Exit comes from the last activity of its own loop") {
  const Steps steps;
  // Two threads run the loop's iterations by turns; the first has the last.
  std::vector<TraceTrack> tracks(2);
  for (int64_t i = 0; i <= 100; ++i)
    tracks[size_t(i % 2)].push_back(activity(2, i, 100 * i));
  tracks[1].push_back(activity(3, 0, 10'050));
  const HopFinder hops(tracks, steps.frames);

  const TraceNode exit = {.name = "exit", .op = "Exit", .is_exit = true};
  const TraceActivity* source =
      hops.source_of(arrival(exit, tag(1, 0), 11'000));
  REQUIRE(source != nullptr);
  CHECK(source->begin == 10'000);
  CHECK(source->track == 0);

  const TraceNode other = {.name = "other_exit", .op = "Exit", .is_exit = true};
  source = hops.source_of(arrival(other, tag(1, 0), 11'000));
  REQUIRE(source != nullptr);
  CHECK(source->begin == 10'050);
  CHECK(source->track == 1);

  const TraceNode unknown = {.name = "?", .op = "Exit", .is_exit = true};
  CHECK(hops.source_of(arrival(unknown, tag(1, 0), 11'000)) == nullptr);
}

TEST_CASE("trace hops: a token comes from the iteration that has sent it") {
  const Steps steps;
  const std::vector<TraceTrack> tracks = {
      {activity(1, 0, 0), activity(2, 0, 20), activity(4, 0, 60),
       activity(1, 0, 80)},
      {activity(2, 1, 40)}};
  const HopFinder hops(tracks, steps.frames);
  const auto begin_of = [&](const TraceNode& node, const devices::Tag& at,
                            int64_t time) {
    const TraceActivity* source = hops.source_of(arrival(node, at, time));
    return source == nullptr ? -1 : source->begin;
  };

  const TraceNode next = {
      .name = "next", .op = "NextIteration", .is_next_iteration = true};
  CHECK(begin_of(next, tag(2, 1), 40) == 20);
  CHECK(begin_of(next, tag(2, 2), 70) == 40);
  const TraceNode enter = {.name = "enter", .op = "Enter", .is_enter = true};
  CHECK(begin_of(enter, tag(2, 0), 20) == 0);
  const TraceNode call = {.name = "call", .op = "_Call"};
  CHECK(begin_of(call, tag(1, 0), 80) == 60);
  const TraceNode argument = {.name = "x", .op = "Placeholder"};
  CHECK(begin_of(argument, tag(4, 0), 60) == 0);
  // What is fed comes from outside.
  CHECK(begin_of(argument, tag(1, 0), 80) == -1);
}

TEST_CASE("a kernel was launched where its node fired, one after the other") {
  const TraceNode first{.name = "first"}, second{.name = "second"};
  const auto firing = [](const TraceNode& node, int64_t time) {
    TraceEvent event;
    event.kind = TraceEvent::kNode;
    event.device = "GPU:0";
    event.begin = event.end = time;
    event.node = &node;
    return event;
  };
  const auto launch = [](const char* device, const char* node, int64_t begin) {
    actors::TraceLaunch made;
    made.device = device;
    made.node = node;
    made.begin = begin;
    made.end = begin + 5;
    return made;
  };
  const std::vector<TraceTrack> tracks = {
      {activity(1, 0, 10), firing(first, 12), activity(1, 0, 30),
       firing(second, 31), firing(first, 32)},
      {activity(1, 0, 18), firing(first, 20)}};
  const std::vector<actors::TraceLaunch> launches = {
      launch("GPU:0", "first", 15),  launch("GPU:0", "first", 19),
      launch("GPU:0", "second", 25), launch("GPU:0", "first", 40),
      launch("GPU:0", "first", 50),  launch("GPU:1", "first", 50)};
  LaunchFinder finder(tracks, launches);
  const auto at = finder.next(launches[0]);
  REQUIRE(at.has_value());
  CHECK(at->time == 12);
  CHECK(at->track == 0);
  // It began before its node seems to have fired, between looks at the clock.
  const auto early = finder.next(launches[1]);
  REQUIRE(early.has_value());
  CHECK(early->time == 19);
  CHECK(early->track == 1);
  // The thread was not at work yet: this is another run's.
  CHECK_FALSE(finder.next(launches[2]).has_value());
  CHECK(finder.next(launches[3])->time == 32);
  // There were no more, and none on the other device.
  CHECK_FALSE(finder.next(launches[4]).has_value());
  CHECK_FALSE(finder.next(launches[5]).has_value());
}
