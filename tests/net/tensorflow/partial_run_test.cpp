#include "net/tensorflow/partial_run.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/tensorflow/asked.h"

namespace tagflow::net {
namespace {

using test::Asked;

// A session with a partial run.
class PartlyRun : public Asked {
 public:
  PartlyRun(const std::vector<std::string>& feeds,
            const std::vector<std::string>& fetches,
            const std::vector<std::string>& targets = {})
      : session(open()) {
    tensorflow::PartialRunSetupRequest request;
    request.set_session_handle(session);
    for (const std::string& name : feeds) request.add_feed(name);
    for (const std::string& name : fetches) request.add_fetch(name);
    for (const std::string& name : targets) request.add_target(name);
    tensorflow::PartialRunSetupResponse response;
    status = ask(&SessionService::partial_run_setup, request, response);
    run_handle = response.partial_run_handle();
  }
  tensorflow::RunStepRequest part(const Values& feeds,
                                  const std::vector<std::string>& fetches) {
    auto request = step(session, feeds, fetches);
    request.set_partial_run_handle(run_handle);
    return request;
  }

  const std::string session;
  std::string run_handle;
  Status status;
};

TEST_CASE("feeds and fetches of a partial run come in several steps") {
  PartlyRun run({"x:0", "x2:0"}, {"y:0", "z:0"});
  REQUIRE(run.status.to_string() == "OK");
  CHECK(run.value(run.part({{"x:0", 2}}, {"y:0"})) == 3);
  CHECK(run.value(run.part({{"x2:0", 5}}, {"z:0"})) == 15);
  // It is over.
  CHECK(run.error(run.part({}, {"z:0"})).code() == Code::kInvalidArgument);
}

TEST_CASE("several partial runs do not disturb one another") {
  PartlyRun run({"x:0", "x2:0"}, {"y:0", "z:0"});
  tensorflow::PartialRunSetupRequest request;
  request.set_session_handle(run.session);
  request.add_feed("x:0");
  request.add_fetch("y:0");
  tensorflow::PartialRunSetupResponse response;
  REQUIRE(run.ask(&SessionService::partial_run_setup, request, response).ok());
  CHECK(run.value(run.part({{"x:0", 2}}, {"y:0"})) == 3);
  auto other = Asked::step(run.session, {{"x:0", 7}}, {"y:0"});
  other.set_partial_run_handle(response.partial_run_handle());
  CHECK(run.value(other) == 8);
  CHECK(run.value(run.part({{"x2:0", 5}}, {"z:0"})) == 15);
}

TEST_CASE("a step feeds alone, and another one fetches") {
  PartlyRun run({"x:0"}, {"y:0"});
  tensorflow::RunStepResponse response;
  CHECK(run.run(run.part({{"x:0", 1}}, {}), response).ok());
  CHECK(run.value(run.part({}, {"y:0"})) == 2);
}

TEST_CASE("what a step must not ask for is refused, and nothing is lost") {
  PartlyRun run({"x:0", "x2:0"}, {"y:0", "z:0"});
  const auto refused = [&](const tensorflow::RunStepRequest& request,
                           const char* why) {
    const Status status = run.error(request);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message() == why);
  };
  refused(run.part({{"one:0", 1}}, {}),
          "[service] the feed one:0 was not specified in partial_run_setup.");
  refused(run.part({{"x:0", 1}}, {"one:0"}),
          "[service] the fetch one:0 was not specified in partial_run_setup.");
  refused(run.part({{"x:0", 1}}, {"z:0"}),
          "[service] the fetch z:0 cannot be computed from the feeds that have "
          "been fed so far: x2:0 is missing");
  CHECK(run.value(run.part({{"x:0", 2}}, {"y:0"})) == 3);
  refused(run.part({{"x:0", 2}}, {}),
          "[service] the feed x:0 has already been fed.");
  refused(run.part({}, {"y:0"}),
          "[service] the fetch y:0 has already been fetched.");
  CHECK(run.value(run.part({{"x2:0", 5}}, {"z:0"})) == 15);
}

TEST_CASE("there must be something to run, of names that exist") {
  CHECK(PartlyRun({"x:0"}, {}).status.code() == Code::kInvalidArgument);
  CHECK(PartlyRun({"x:0", "x:0"}, {"y:0"}).status.code() ==
        Code::kInvalidArgument);
  CHECK(!PartlyRun({"gone:0"}, {"y:0"}).status.ok());
  CHECK(!PartlyRun({"x:0"}, {"gone:0"}).status.ok());
}

TEST_CASE("the error of the run is the answer of its steps") {
  PartlyRun run({"x2:0"}, {"read:0", "z:0"});
  const Status status = run.error(run.part({}, {"read:0"}));
  CHECK(!status.ok());
  CHECK(status.message().find("{{node") != std::string_view::npos);
}

TEST_CASE("a feed of the wrong type is refused") {
  PartlyRun run({"x:0"}, {"y:0"});
  auto request = run.part({{"x:0", 1}}, {"y:0"});
  auto& tensor = *request.mutable_feed(0)->mutable_tensor();
  tensor.set_dtype(tensorflow::DT_INT32);
  tensor.clear_float_val();
  tensor.add_int_val(1);
  CHECK(run.error(request).code() == Code::kInvalidArgument);
}

TEST_CASE("the last step waits for the targets, and has their error") {
  PartlyRun run({"x:0"}, {"y:0"}, {"get"});
  const auto last = run.part({{"x:0", 1}}, {"y:0"});
  tensorflow::RunStepResponse response;
  auto answer = run.begin(&SessionService::run_step, last, response);
  CHECK(answer.wait_for(std::chrono::milliseconds(50)) ==
        std::future_status::timeout);
  tensorflow::RunStepResponse put;
  REQUIRE(run.run(Asked::step(run.session, {{"x", 4}}, {}, {"put"}), put).ok());
  CHECK(answer.get().to_string() == "OK");

  PartlyRun fails({"x:0"}, {"y:0"}, {"read"});  // nobody has assigned it
  const Status status = fails.error(fails.part({{"x:0", 1}}, {"y:0"}));
  CHECK(status.code() == Code::kFailedPrecondition);
}

TEST_CASE("a partial run ends with a step that fails, or with its session") {
  PartlyRun run({"x:0", "x2:0"}, {"y:0"}, {"get"});
  auto request = run.part({{"x:0", 1}, {"x2:0", 1}}, {"y:0"});
  request.mutable_options()->set_timeout_in_ms(50);
  CHECK(run.error(request).code() == Code::kDeadlineExceeded);
  // Its target does not take what others wait for.
  tensorflow::RunStepResponse response;
  REQUIRE(run.run(Asked::step(run.session, {{"x", 4}}, {}, {"put"}), response)
              .ok());
  CHECK(run.value(Asked::step(run.session, {}, {"get:0"})) == 4);

  PartlyRun waits({"x:0"}, {"y:0"}, {"get"});
  const auto last = waits.part({{"x:0", 1}}, {"y:0"});
  auto answer = waits.begin(&SessionService::run_step, last, response);
  REQUIRE(waits.close(waits.session).ok());
  CHECK(answer.get().code() == Code::kCancelled);
}

TEST_CASE("partial runs that are over make room for others") {
  PartlyRun run({"x:0"}, {"y:0"});
  const SessionLimits limits;
  for (size_t i = 0; i < 3 * limits.partial_runs; ++i) {
    CHECK(run.value(run.part({{"x:0", 2}}, {"y:0"})) == 3);
    tensorflow::PartialRunSetupRequest request;
    request.set_session_handle(run.session);
    request.add_feed("x:0");
    request.add_fetch("y:0");
    tensorflow::PartialRunSetupResponse response;
    REQUIRE(
        run.ask(&SessionService::partial_run_setup, request, response).ok());
    run.run_handle = response.partial_run_handle();
  }
}

TEST_CASE("the time-out of a session is that of steps, not of a partial run") {
  Asked asked;
  const std::string session =
      asked.open(test::kGraph, "operation_timeout_in_ms: 100");
  tensorflow::PartialRunSetupRequest request;
  request.set_session_handle(session);
  request.add_feed("x:0");
  request.add_fetch("y:0");
  request.add_target("get");
  tensorflow::PartialRunSetupResponse response;
  REQUIRE(
      asked.ask(&SessionService::partial_run_setup, request, response).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  auto step = Asked::step(session, {{"x:0", 2}}, {});
  step.set_partial_run_handle(response.partial_run_handle());
  tensorflow::RunStepResponse answer;
  CHECK(asked.run(step, answer).to_string() == "OK");
  auto last = Asked::step(session, {}, {"y:0"});
  last.set_partial_run_handle(response.partial_run_handle());
  CHECK(asked.error(last).code() == Code::kDeadlineExceeded);
}

TEST_CASE("partial runs share the session's state, and end with it") {
  PartlyRun run({"x:0"}, {"read:0"}, {"init"});
  // It reads what was assigned before, or what its own target assigns.
  tensorflow::RunStepResponse response;
  REQUIRE(run.run(Asked::step(run.session, {{"x", 4}}, {}, {"init"}), response)
              .ok());
  PartlyRun waiting({"x:0"}, {"y:0"});
  CHECK(waiting.close(waiting.session).ok());
  CHECK(waiting.error(waiting.part({{"x:0", 1}}, {"y:0"})).code() ==
        Code::kAborted);
}

}  // namespace
}  // namespace tagflow::net
