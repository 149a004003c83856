#include "apps/shared/runs/engine_options.h"

#include <doctest/doctest.h>

namespace tagflow::apps {
namespace {

TEST_CASE("engine options: the defaults are the engine's own") {
  const auto session = to_session_options({});
  REQUIRE(session.ok());
  CHECK(session->passes == graph::PassSet());
  CHECK(session->hand_off == actors::HandOff::kDirect);
  CHECK(session->timeout.count() == 0);
}

TEST_CASE("engine options: every switch reaches the session") {
  EngineOptions options;
  options.workers = 3;
  options.window = 7;
  options.mailbox_only = true;
  options.passes = "none";
  options.devices = "cpu:2";
  options.soft_placement = true;
  options.scatter = 5;
  options.no_recv_scheduling = true;
  options.lossy = {"x:0"};
  options.through_wire = true;
  options.seed = 42;
  options.timeout = 0.25;
  options.max_nodes = 1000;
  const auto session = to_session_options(options);
  REQUIRE(session.ok());
  CHECK(session->workers == 3);
  CHECK(session->window == 7);
  CHECK(session->hand_off == actors::HandOff::kMailbox);
  CHECK(session->passes == graph::PassSet::none());
  CHECK(session->devices == "cpu:2");
  CHECK(session->soft_placement);
  CHECK(session->scatter == 5);
  CHECK_FALSE(session->schedule_receives);
  CHECK(session->lossy == std::vector<std::string>{"x:0"});
  CHECK(session->through_wire);
  CHECK(session->seed == 42);
  CHECK(session->timeout == std::chrono::milliseconds(250));
  CHECK(session->max_nodes == 1000);
}

TEST_CASE("engine options: unknown passes and devices are refused by name") {
  EngineOptions passes;
  passes.passes = "edges,magic";
  CHECK(to_session_options(passes).status().message().find(
            "no pass \"magic\"") != std::string_view::npos);
  EngineOptions devices;
  devices.devices = "gpu:2";
  CHECK(to_session_options(devices).status().code() == Code::kInvalidArgument);
}

}  // namespace
}  // namespace tagflow::apps
