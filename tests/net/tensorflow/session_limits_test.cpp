#include "net/tensorflow/session_limits.h"

#include <doctest/doctest.h>

#include <future>
#include <string>
#include <vector>

#include "net/tensorflow/service_parts.h"
#include "net/tensorflow/trace_shelf.h"
#include "tests/net/tensorflow/asked.h"

namespace tagflow::net {
namespace {

using test::Asked;
using test::from_text;

Asked limited(const SessionLimits& limits) {
  SessionService::Options options;
  options.limits = limits;
  return Asked(options);
}

Status open(Asked& asked, const std::string& graph = "") {
  tensorflow::CreateSessionRequest request;
  *request.mutable_graph_def() = from_text<tensorflow::GraphDef>(graph);
  tensorflow::CreateSessionResponse response;
  return asked.ask(&SessionService::create_session, request, response);
}

TEST_CASE("a service without room is refused") {
  SessionService::Options options;
  options.limits.runs = 0;
  CHECK(SessionService::create(options).status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("sessions beyond the limit are refused, or replace idle ones") {
  Asked asked = limited({.sessions = 2});
  const std::string first = asked.open();
  asked.open();
  CHECK(open(asked).code() == Code::kResourceExhausted);
  REQUIRE(asked.close(first).ok());
  CHECK(open(asked).ok());

  Asked hasty = limited({.sessions = 1, .idle = std::chrono::seconds(0)});
  const std::string old = hasty.open();
  const std::string fresh = hasty.open();
  CHECK(hasty.error(Asked::step(old, {}, {"one:0"})).code() == Code::kAborted);
  CHECK(hasty.value(Asked::step(fresh, {}, {"one:0"})) == 1);
  // One that runs something is not idle.
  tensorflow::RunStepResponse response;
  const auto waits = Asked::step(fresh, {}, {"get:0"});
  auto answer = hasty.begin(&SessionService::run_step, waits, response);
  CHECK(open(hasty).code() == Code::kResourceExhausted);
  REQUIRE(hasty.close(fresh).ok());
  CHECK(answer.get().code() == Code::kCancelled);
}

TEST_CASE("runs beyond the limit are refused, and then there is room again") {
  Asked asked = limited({.runs = 2});
  const std::string session = asked.open();
  const auto waits = Asked::step(session, {}, {"get:0"});
  tensorflow::RunStepResponse one, two;
  auto first = asked.begin(&SessionService::run_step, waits, one);
  auto second = asked.begin(&SessionService::run_step, waits, two);
  CHECK(asked.error(Asked::step(session, {}, {"one:0"})).code() ==
        Code::kResourceExhausted);
  REQUIRE(asked.close(session).ok());
  CHECK(first.get().code() == Code::kCancelled);
  CHECK(second.get().code() == Code::kCancelled);
  CHECK(asked.value(Asked::step(asked.open(), {}, {"one:0"})) == 1);
}

TEST_CASE("a few bytes cannot ask for much memory") {
  Asked asked = limited({.bytes = 1 << 20});
  const std::string session = asked.open();
  auto request = Asked::step(session, {{"x:0", 1}}, {"y:0"});
  auto& shape =
      *request.mutable_feed(0)->mutable_tensor()->mutable_tensor_shape();
  shape.add_dim()->set_size(1 << 20);
  CHECK(asked.error(request).code() == Code::kResourceExhausted);
  shape.add_dim()->set_size(int64_t{1} << 60);  // the product overflows
  CHECK(asked.error(request).code() == Code::kResourceExhausted);
  shape.mutable_dim(1)->set_size(-1);
  CHECK(!asked.error(request).ok());
  // A constant of a graph is counted as long as its session lives.
  const std::string zeros = R"(
    node { name: "zeros" op: "Const"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT
             tensor_shape { dim { size: 300000 } } float_val: 0 } } } })";
  REQUIRE(open(asked, zeros).ok());
  CHECK(asked.service->figures().bytes > 1200000);
  CHECK(open(asked, zeros).code() == Code::kResourceExhausted);
}

TEST_CASE("what is refused takes no bytes from others") {
  ByteCount bytes(100);
  auto share = bytes.take(60);
  REQUIRE(share.ok());
  CHECK(bytes.take(uint64_t{1} << 63).status().code() ==
        Code::kResourceExhausted);
  CHECK(bytes.take(UINT64_MAX).status().code() == Code::kResourceExhausted);
  CHECK(bytes.used() == 60);
  CHECK(bytes.take(40).ok());
  CHECK(!bytes.take(41).ok());
  const auto beyond = bytes.take_anyway(1000);
  CHECK(!bytes.take(1).ok());
}

TEST_CASE("a warning does not keep all that a client writes") {
  std::vector<std::string> said;
  SessionService::Options options;
  options.on_warning = [&](const std::string& text) { said.push_back(text); };
  {
    Asked asked(options);
    asked.open("", "device_count { key: '" + std::string(100000, 'A') +
                       "' value: 3 }");
  }
  REQUIRE(said.size() == 1);
  CHECK(said[0].size() < 5000);
}

TEST_CASE("callables and partial runs have limits") {
  Asked asked = limited({.callables = 1, .partial_runs = 1});
  const std::string session = asked.open();
  tensorflow::MakeCallableRequest make;
  make.set_session_handle(session);
  make.mutable_options()->add_fetch("one:0");
  tensorflow::MakeCallableResponse made;
  CHECK(asked.ask(&SessionService::make_callable, make, made).ok());
  CHECK(asked.ask(&SessionService::make_callable, make, made).code() ==
        Code::kResourceExhausted);

  tensorflow::PartialRunSetupRequest setup;
  setup.set_session_handle(session);
  setup.add_feed("x:0");
  setup.add_fetch("y:0");
  tensorflow::PartialRunSetupResponse ready;
  CHECK(asked.ask(&SessionService::partial_run_setup, setup, ready).ok());
  CHECK(asked.ask(&SessionService::partial_run_setup, setup, ready).code() ==
        Code::kResourceExhausted);
}

TEST_CASE("traces have a limit, which counts those that are kept") {
  TraceShelf shelf(2);
  auto first = shelf.take();
  REQUIRE(first.ok());
  {
    auto second = shelf.take();
    REQUIRE(second.ok());
    CHECK(shelf.take().status().code() == Code::kResourceExhausted);
  }
  REQUIRE(shelf.take().ok());
  shelf.keep(*std::move(first));
  first = shelf.take();
  REQUIRE(first.ok());
  CHECK(shelf.take().status().code() == Code::kResourceExhausted);
}

TEST_CASE("random graphs and requests are answered by errors") {
  Asked asked;
  const std::string session = asked.open();
  const std::string graphs[] = {
      R"(node { name: "" op: "NoOp" })",
      R"(node { name: "a" op: "Neg" input: "a" })",
      R"(node { name: "a" op: "Neg" input: "gone:7" })",
      R"(node { name: "a" op: "AddV2" input: "one" })",
      R"(node { name: "a" op: "Neg" input: "^^one" })",
      R"(library { function { signature { name: "" } } })",
      R"(library { gradient { function_name: "f" gradient_func: "g" } }
         node { name: "one" op: "NoOp" })",
      R"(node { name: "a" op: "Const" attr { key: "dtype"
           value { type: DT_FLOAT } } })",
  };
  for (const std::string& graph : graphs) {
    CAPTURE(graph);
    CHECK(!asked.extend(session, graph, 0).ok());
  }
  const std::vector<std::string> names = {
      "", ":", "one:", "one:-1", "one:9", "^one", "one:99999999999999999999"};
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(!asked.error(Asked::step(session, {}, {name})).ok());
    CHECK(!asked.error(Asked::step(session, {{name, 1}}, {"one:0"})).ok());
  }
  CHECK(!asked.error(Asked::step(session, {{"x:0", 1}, {"x:0", 2}}, {"y:0"}))
             .ok());
  CHECK(asked.value(Asked::step(session, {}, {"one:0"})) == 1);
}

}  // namespace
}  // namespace tagflow::net
