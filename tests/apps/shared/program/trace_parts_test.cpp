// Traces of several processes as one file.
#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "apps/shared/program/trace.h"

using namespace tagflow;
using nlohmann::json;
namespace ta = tagflow::actors;

namespace {

std::string device_of(int task) {
  return "/job:worker/replica:0/task:" + std::to_string(task) + "/device:CPU:0";
}

// An iteration on a device from `begin` to `end`; there the node fires, or a
// token of `sender` arrives at its begin.
ta::TracePart part_of(std::chrono::steady_clock::time_point start, int task,
                      int64_t begin, int64_t end,
                      const std::string& sender = "") {
  ta::TracePart part;
  part.start = start;
  ta::TracePlan& plan = part.plans.emplace_back();
  plan.device = device_of(task);
  plan.nodes.push_back({sender.empty() ? "send" : "recv",
                        sender.empty() ? "_Send" : "_Recv", false, false, false,
                        sender});
  part.frames.push_back({&plan, {}, {}});
  const auto add = [&](ta::TraceEvent::Kind kind, int64_t until,
                       const ta::TraceNode* node) {
    part.tracks.back().events.push_back(
        {kind, begin, until, plan.device, plan.frame, devices::Tag(), node});
  };
  part.tracks.push_back({uint64_t(task), {}});
  add(ta::TraceEvent::kActivity, end, nullptr);
  add(sender.empty() ? ta::TraceEvent::kNode : ta::TraceEvent::kArrive, begin,
      plan.nodes.data());
  return part;
}

// A worker sends a token that comes to another one at 5000 ns, at the begin of
// its activity.
json trace_token(int64_t sent_begin, int64_t sent_end) {
  ta::Trace trace;
  const auto now = std::chrono::steady_clock::now();
  trace.add_part("/job:worker/task:1",
                 part_of(now, 1, 5000, 7000, device_of(0)));
  trace.add_part("/job:worker/task:0", part_of(now, 0, sent_begin, sent_end));
  json file = json::parse(apps::format_trace(trace), nullptr, false);
  REQUIRE(file.is_object());
  return file;
}

json find(const json& file, const std::string& phase) {
  json found;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != phase) continue;
    CHECK(found.is_null());
    found = event;
  }
  return found;
}

}  // namespace

TEST_CASE(
    "a file of several processes has one for each task, with its threads") {
  const json file = trace_token(1000, 3000);
  std::map<std::string, int> processes;
  std::map<int, std::set<std::string>> threads;
  for (const json& event : file["traceEvents"]) {
    if (event["name"] == "process_name")
      processes[event["args"]["name"]] = event["pid"];
    if (event["name"] == "thread_name")
      CHECK(threads[event["pid"]].insert(event["args"]["name"]).second);
  }
  REQUIRE(processes.size() == 2);
  REQUIRE(processes.contains("tagflow /job:worker/task:0 CPU:0"));
  REQUIRE(processes.contains("tagflow /job:worker/task:1 CPU:0"));
  for (const auto& [name, process] : processes)
    CHECK(threads[process] == std::set<std::string>{"worker 1"});
  const json begin = find(file, "s"), end = find(file, "f");
  REQUIRE(begin.is_object());
  REQUIRE(end.is_object());
  CHECK(begin["pid"] == processes["tagflow /job:worker/task:0 CPU:0"]);
  CHECK(end["pid"] == processes["tagflow /job:worker/task:1 CPU:0"]);
  CHECK(begin["args"]["node"] == "recv");
}

TEST_CASE("a token of another process has its arrow in spite of the clocks") {
  // The end of the sender's activity seems to be after the arrival.
  for (const auto& [sent_begin, sent_end] :
       {std::pair(1000, 5500), std::pair(4900, 9000)}) {
    const json file = trace_token(sent_begin, sent_end);
    const json begin = find(file, "s"), end = find(file, "f");
    REQUIRE(begin.is_object());
    REQUIRE(end.is_object());
    CHECK(begin["ts"].get<double>() <= end["ts"].get<double>());
    CHECK(begin["id"] == end["id"]);
  }
  // It would have to go back in time.
  CHECK(find(trace_token(6000, 8000), "s").is_null());
}
