#include "apps/shared/program/trace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "actors/session/session.h"
#include "apps/shared/io/file.h"
#include "graph/builder/builder.h"
#include "tests/temp_path.h"

using namespace tagflow;
using nlohmann::json;
namespace tg = tagflow::graph;
namespace ta = tagflow::actors;

namespace {

// A loop of `trips` iterations, traced.
json trace_loop(int trips, int workers, bool compile_edges,
                size_t max_words = ta::Trace::kMaxWords) {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Outputs last = tg::while_loop(
      s,
      [&](const tg::Scope& in, const tg::Outputs& v) {
        return tg::ops::less(in, v[0], trips);
      },
      [](const tg::Scope& in, const tg::Outputs& v) -> tg::Outputs {
        return {tg::ops::add(in, v[0], 1)};
      },
      {0});
  REQUIRE(s.ok());
  ta::SessionOptions options;
  options.workers = workers;
  options.passes = compile_edges ? graph::PassSet::only(graph::Pass::kEdges)
                                 : graph::PassSet::none();
  auto session = ta::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  ta::Trace recorded(max_words);
  ta::RunOptions run;
  run.trace = &recorded;
  REQUIRE(session->run({}, {last[0].name()}, {}, run).ok());
  const auto path = testing::temp_path("trace.json");
  REQUIRE(apps::write_trace(recorded, path).ok());
  const auto text = io::read_file(path);
  std::filesystem::remove(path);
  REQUIRE(text.ok());
  json trace = json::parse(*text, nullptr, false);
  REQUIRE(trace.is_object());
  return trace;
}

size_t count_phase(const json& trace, const std::string& phase) {
  size_t count = 0;
  for (const json& event : trace["traceEvents"]) count += event["ph"] == phase;
  return count;
}

}  // namespace

TEST_CASE("a trace has a slice for each firing, with frame and iteration") {
  const json trace = trace_loop(3, 1, true);
  std::vector<int64_t> iterations;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    if (event["args"]["op"] != "AddV2") continue;
    CHECK(event["args"]["frame"] != "root");
    iterations.push_back(event["args"]["iteration"].get<int64_t>());
  }
  CHECK(iterations == std::vector<int64_t>{0, 1, 2});
}

TEST_CASE("each arrow of a trace begins once and ends once, not before") {
  for (const bool compile_edges : {false, true}) {
    const json trace = trace_loop(5, 2, compile_edges);
    std::map<int64_t, double> begun;
    std::map<std::string, int> ended;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "s") {
        CHECK(begun.emplace(event["id"], event["ts"]).second);
      }
    }
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "f") continue;
      const auto it = begun.find(event["id"].get<int64_t>());
      REQUIRE(it != begun.end());
      CHECK(it->second <= event["ts"].get<double>());
      begun.erase(it);
      ++ended[event["name"]];
    }
    CHECK(begun.empty());
    CHECK(ended["NextIteration"] == 5);
    CHECK(ended["Enter"] == 1);
    CHECK(ended["Exit"] == 1);
  }
}

TEST_CASE("a trace's slices on one track nest") {
  const json trace = trace_loop(20, 2, false);
  std::map<int, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], length = event["dur"];
    tracks[event["tid"]].emplace_back(begin, begin + length);
  }
  CHECK_FALSE(tracks.empty());
  constexpr double kRounding = 1e-4;  // of times that are exact to 1e-3
  for (auto& [track, slices] : tracks) {
    // Outer ones first if they begin together.
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> open;
    for (const auto& [begin, end] : slices) {
      while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
      if (!open.empty()) CHECK(end <= open.back() + kRounding);
      open.push_back(end);
    }
  }
}

TEST_CASE("a trace names its process and its tracks") {
  const json trace = trace_loop(1, 1, true);
  std::map<std::string, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["args"].contains("name")) {
      names[event["name"]] = event["args"]["name"];
    }
  }
  CHECK(names["process_name"] == "tagflow");
  CHECK(names["thread_name"].starts_with("worker "));
}

TEST_CASE("a trace keeps the first events, and counts the others") {
  const json trace = trace_loop(5000, 1, true, 2048);
  CHECK(trace["otherData"]["dropped"].get<int64_t>() > 5000);
  CHECK(count_phase(trace, "X") <= 2048);
  CHECK(trace_loop(1, 1, true)["otherData"]["dropped"] == 0);
}

// x goes to an accelerator, is computed with there, and comes back.
TEST_CASE("an accelerator's streams have tracks: kernels and copies") {
  tg::Graph graph;
  const tg::Scope s(graph);
  const tg::Scope there = s.with_device("/device:STREAM:0");
  const tg::Output x = tg::ops::placeholder(s.named("x"), DataType::kFloat,
                                            PartialShape({1000}));
  tg::Output y = x;
  for (const char* name : {"first", "second", "third"})
    y = tg::ops::neg(there.named(name), y);
  REQUIRE(s.ok());
  ta::SessionOptions options;
  options.devices = "cpu:1,stream:1";
  options.passes = graph::PassSet::none();
  auto session = ta::Session::create(options).value();
  REQUIRE(session->extend(graph).ok());
  const std::vector<ta::Feed> feeds = {
      {"x", Tensor::make(DataType::kFloat, {1000})}};
  ta::Trace recorded;
  ta::RunOptions run;
  run.trace = &recorded;
  // Only one of these runs is traced.
  REQUIRE(session->run(feeds, {y.name()}).ok());
  REQUIRE(session->run(feeds, {y.name()}, {}, run).ok());
  REQUIRE(session->run(feeds, {y.name()}).ok());
  const json trace = json::parse(apps::format_trace(recorded));
  std::map<std::pair<int, int>, std::string> tracks;
  std::map<int, std::string> processes;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
    } else if (event["ph"] == "M" && event["name"] == "process_name") {
      processes[event["pid"]] = event["args"]["name"];
    }
  // Of each track, what is on it.
  std::map<std::string, std::vector<json>> slices;
  std::map<int64_t, json> arrows;  // their beginnings
  int launches = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" &&
        (event["cat"] == "launch" || event["cat"] == "copy")) {
      CHECK(processes.at(event["pid"]).ends_with("STREAM:0"));
      slices[tracks.at({event["pid"], event["tid"]})].push_back(event);
    } else if (event["ph"] == "s" && event["cat"] == "launch") {
      CHECK(tracks.at({event["pid"], event["tid"]}).starts_with("worker "));
      arrows[event["id"]] = event;
    } else if (event["ph"] == "f" && event["cat"] == "launch") {
      CHECK(tracks.at({event["pid"], event["tid"]}) == "execution");
      CHECK(arrows.at(event["id"])["ts"].get<double>() <=
            event["ts"].get<double>());
      ++launches;
    }
  }
  const std::vector<json>& kernels = slices["execution"];
  REQUIRE(kernels.size() == 3);
  const char* const names[] = {"first", "second", "third"};
  for (size_t i = 0; i < 3; ++i) {
    CHECK(kernels[i]["name"] == names[i]);
    CHECK(kernels[i]["dur"].get<double>() >= 0);
    if (i > 0)
      CHECK(kernels[i]["ts"].get<double>() >=
            kernels[i - 1]["ts"].get<double>());
  }
  CHECK(launches == 3);
  for (const auto& [name, to] : {std::pair("copies to the device", "device"),
                                 std::pair("copies to the host", "host")}) {
    const auto& track = name;  // no lambda captures a structured binding
    CAPTURE(track);
    REQUIRE(slices[track].size() == 1);
    CHECK(slices[track][0]["name"] == "copy");
    CHECK(slices[track][0]["args"]["bytes"] == 4000);
    CHECK(slices[track][0]["args"]["to"] == to);
  }
}

TEST_CASE("a trace that cannot be written is an error") {
  const ta::Trace recorded;
  const Status status =
      apps::write_trace(recorded, "/no/such/folder/trace.json");
  CHECK(status.code() == Code::kNotFound);
  CHECK(status.message().find("/no/such/folder/trace.json") !=
        std::string::npos);
}
