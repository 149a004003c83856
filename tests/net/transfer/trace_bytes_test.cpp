#include "net/transfer/trace_bytes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "tests/actors/program.h"
#include "tests/net/wire/hex.h"

namespace tagflow::net {
namespace {

using actors::Trace;
using actors::TraceEvent;
using actors::TracePart;
using actors::TracePlan;
using graph::Output;
using graph::Outputs;
namespace ops = graph::ops;

// One of each list.
TracePart small_part() {
  TracePart part;
  part.start =
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(258));
  TracePlan& plan = part.plans.emplace_back();
  plan.device = "d";
  plan.frame = "f";
  plan.nodes.push_back({"a", "Enter", true, false, false, {}});
  plan.nodes.push_back({"b", "_Recv", false, false, false, "e"});
  plan.exits = {"x"};
  part.frames.push_back({&plan, {1, 2, 0}, {3, 4, 5}});
  part.launches.push_back(
      {"d", devices::AcceleratorActivity::Stream::kToHost, "", 300, 6, 8});
  const devices::Tag tag = {1, 2, 9};
  TracePart::Track& track = part.tracks.emplace_back();
  track.thread = 7;
  track.events = {
      {TraceEvent::kActivity, 10, 30, plan.device, plan.frame, tag, nullptr},
      {TraceEvent::kArrive, 10, 10, plan.device, plan.frame, tag,
       plan.nodes.data()},
      {TraceEvent::kNode, 12, 13, plan.device, plan.frame, tag,
       plan.nodes.data() + 1}};
  part.dropped = 1;
  return part;
}

constexpr std::string_view kGolden =
    "02 01 00 00 00 00 00 00"
    "01 01 64 01 66 00"
    "02 01 61 05 45 6e 74 65 72 01 00 01 62 05 5f 52 65 63 76 00 01 65"
    "01 01 78"
    "01 00 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00"
    "03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 05"
    "01 01 64 02 00 ac 02 06 02"
    "01 07 00 00 00 00 00 00 00 03"
    "03 0a 14 00 09 00"
    "04 00 00 00 09 00"
    "00 02 01 00 09 01"
    "01";

// Of a loop of so many trips, run here.
std::string bytes_of_loop(int trips) {
  const actors::Program program;
  const Outputs last = graph::while_loop(
      program.s,
      [&](const graph::Scope& in, const Outputs& v) {
        return ops::less(in, v[0], trips);
      },
      [](const graph::Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1)};
      },
      {0});
  const auto session = actors::make_session({}, program.graph);
  Trace trace;
  actors::RunOptions run;
  run.trace = &trace;
  REQUIRE(session->run({}, {last[0].name()}, {}, run).ok());
  return write_trace(trace.part());
}

std::string error_of(std::string_view bytes) {
  const auto part = parse_trace(bytes);
  REQUIRE_FALSE(part.ok());
  return std::string(part.status().message());
}

}  // namespace

TEST_CASE("a trace has its bytes") {
  const std::string bytes = write_trace(small_part());
  CHECK(hex(bytes) == hex(unhex(kGolden)));
  const auto part = parse_trace(bytes);
  REQUIRE(part.ok());
  CHECK(write_trace(*part) == bytes);
  REQUIRE(part->tracks.size() == 1);
  const auto& events = part->tracks[0].events;
  REQUIRE(events.size() == 3);
  CHECK(events[0].node == nullptr);
  CHECK(events[1].node->is_enter);
  CHECK(events[2].node->sender == "e");
  CHECK(events[2].begin == 12);
  CHECK(events[2].end == 13);
  CHECK(events[2].tag == devices::Tag{1, 2, 9});
  CHECK(events[2].device == "d");
  CHECK(part->frames[0].caller == devices::Tag{3, 4, 5});
  CHECK(part->launches[0].bytes == 300);
  CHECK(part->dropped == 1);
}

TEST_CASE("what was recorded of a run comes back from its bytes") {
  const std::string bytes = bytes_of_loop(50);
  const auto part = parse_trace(bytes);
  REQUIRE(part.ok());
  CHECK(write_trace(*part) == bytes);
  size_t adds = 0;
  for (const auto& track : part->tracks)
    adds +=
        size_t(std::ranges::count_if(track.events, [](const TraceEvent& event) {
          return event.kind == TraceEvent::kNode && event.node->op == "AddV2";
        }));
  CHECK(adds == 50);
}

TEST_CASE("a trace that is too long lacks its last events, which it counts") {
  const auto whole = parse_trace(bytes_of_loop(50));
  REQUIRE(whole.ok());
  const auto count = [](const TracePart& part) {
    size_t events = 0;
    for (const auto& track : part.tracks) events += track.events.size();
    return events;
  };
  const size_t all = count(*whole);
  const size_t length = write_trace(*whole).size();
  size_t last = 0;
  for (size_t most = 100; most <= length + 100; most += 37) {
    const std::string bytes = write_trace(*whole, most);
    CHECK(bytes.size() <= most);
    const auto part = parse_trace(bytes);
    REQUIRE(part.ok());
    CHECK(count(*part) + part->dropped == all);
    CHECK(count(*part) >= last);
    last = count(*part);
  }
  CHECK(last == all);
}

TEST_CASE("a trace of many threads is no longer than it may be") {
  TracePart part = small_part();
  constexpr size_t kThreads = 20;
  const std::vector<TraceEvent> events = part.tracks[0].events;
  part.tracks.clear();
  for (size_t thread = 0; thread < kThreads; ++thread)
    part.tracks.push_back({thread, events});
  const size_t length = write_trace(part).size();
  for (size_t most = 100; most <= length; ++most) {
    CAPTURE(most);
    const std::string bytes = write_trace(part, most);
    CHECK(bytes.size() <= most);
    CHECK(parse_trace(bytes).ok());
  }
}

TEST_CASE("bytes of a trace that a peer made up are refused") {
  const std::string bytes = unhex(kGolden);
  const auto with = [&](size_t at, char value) {
    std::string changed = bytes;
    changed[at] = value;
    return changed;
  };
  const size_t frame = bytes.find(unhex("01 00 01 00 00 00"));
  CHECK(error_of(with(frame + 1, 1)).find("there is no plan 1") !=
        std::string::npos);
  const size_t events = bytes.find(unhex("03 0a 14"));
  CHECK(error_of(with(events, 5)).find("there is no event 5") !=
        std::string::npos);
  CHECK(error_of(with(events + 3, 1)).find("there is no frame 1") !=
        std::string::npos);
  CHECK(error_of(with(events + 5, 1)).find("an activity has a node") !=
        std::string::npos);
  CHECK(error_of(with(events + 11, 2)).find("there is no node 2") !=
        std::string::npos);
  const size_t launch = bytes.find(unhex("01 01 64 02"));
  CHECK(error_of(with(launch + 3, 3)).find("there is no stream 3") !=
        std::string::npos);
  CHECK(error_of(bytes + '\0').find("1 bytes are left over") !=
        std::string::npos);
  // The sum of two times is more than a time can be.
  std::string late = bytes.substr(0, events + 1);
  for (int i = 0; i < 8; ++i) late += '\xff';
  late += "\x0f\x02" + std::string(20, '\0');
  CHECK(error_of(late).find("a duration is 2, more than 1") !=
        std::string::npos);
  CHECK(error_of(std::string(kMostTraceBytes + 1, 0)).find("longer than") !=
        std::string::npos);
}

TEST_CASE("a changed byte of a trace is an error, or is there when written") {
  std::string bytes = bytes_of_loop(3);
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    changed[random() % changed.size()] = char(random());
    const auto part = parse_trace(changed);
    // A device that is named twice makes two frames one.
    if (part.ok()) CHECK(write_trace(*part).size() <= changed.size());
    CHECK_FALSE(parse_trace(bytes.substr(0, random() % bytes.size())).ok());
  }
}

TEST_CASE("a trace goes as a tensor of bytes, and no other tensor is one") {
  const std::string bytes = unhex(kGolden);
  Tensor tensor = Tensor::make(DataType::kUInt8, {int64_t(bytes.size())});
  std::ranges::copy(bytes, static_cast<char*>(tensor.mutable_raw()));
  CHECK(part_of(tensor).ok());
  CHECK(part_of(Tensor::scalar(1.5F)).status().code() == Code::kDataLoss);
  const Trace trace;
  CHECK(part_of(tensor_of(trace.part()).value()).value().frames.empty());
}

}  // namespace tagflow::net
