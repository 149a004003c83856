#include "net/tensorflow/session_service.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/net/tensorflow/asked.h"

namespace tagflow::net {
namespace {

using test::Asked;
using test::from_text;
using test::scalar;
using test::to_float;

const char kMore[] = R"(
  node { name: "w" op: "Neg" input: "y"
         attr { key: "T" value { type: DT_FLOAT } } })";

TEST_CASE("a session runs the graph that it was opened with") {
  Asked asked;
  const std::string session = asked.open();
  tensorflow::RunStepResponse response;
  REQUIRE(
      asked.run(Asked::step(session, {{"x:0", 2}}, {"y:0", "x:0"}), response)
          .ok());
  REQUIRE(response.tensor_size() == 2);
  CHECK(response.tensor(0).name() == "y:0");
  CHECK(test::to_float(response.tensor(0).tensor()) == 3);
  CHECK(test::to_float(response.tensor(1).tensor()) == 2);
  CHECK(asked.close(session).ok());
}

TEST_CASE("an empty session is extended, version by version") {
  Asked asked;
  const std::string session = asked.open("");
  int64_t version = 0;
  REQUIRE(asked.extend(session, test::kGraph, 0, &version).ok());
  CHECK(version == 1);
  REQUIRE(asked.extend(session, kMore, 1, &version).ok());
  CHECK(version == 2);
  CHECK(asked.value(Asked::step(session, {{"x:0", 2}}, {"w:0"})) == -3);

  const Status status = asked.extend(session, kMore, 1);
  CHECK(status.code() == Code::kAborted);
  CHECK(status.message() ==
        "[service] the graph has version 2, but its client expects 1");
  CHECK(asked.extend(session, kMore, 2).code() == Code::kAlreadyExists);
  // After an error it is as it was.
  CHECK(asked.value(Asked::step(session, {{"x:0", 2}}, {"w:0"})) == -3);
}

TEST_CASE("a session that does not exist is Aborted, so that clients reopen") {
  Asked asked;
  const std::string session = asked.open();
  REQUIRE(asked.close(session).ok());
  for (const std::string& handle : {session, std::string(), session + "0"}) {
    CHECK(asked.error(Asked::step(handle, {}, {"one:0"})).code() ==
          Code::kAborted);
    CHECK(asked.extend(handle, kMore, 0).code() == Code::kAborted);
    CHECK(asked.close(handle).code() == Code::kAborted);
  }
}

TEST_CASE("handles are long, and differ") {
  Asked asked;
  const std::string a = asked.open(""), b = asked.open("");
  CHECK(a != b);
  CHECK(a.size() >= 32);
}

TEST_CASE("errors have the code, and the node in the form of clients") {
  Asked asked;
  const std::string session = asked.open();
  Status status = asked.error(Asked::step(session, {}, {"read:0"}));
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(status.message().ends_with("\n\t [[{{node read}}]]"));
  status = asked.error(Asked::step(session, {}, {"nothing:0"}));
  CHECK(status.code() == Code::kNotFound);
  CHECK(status.message().find("nothing") != std::string_view::npos);
}

TEST_CASE("errors go into the response, if the client asks for that") {
  Asked asked;
  auto request = Asked::step(asked.open(), {}, {"read:0"});
  request.set_store_errors_in_response_body(true);
  tensorflow::RunStepResponse response;
  CHECK(asked.run(request, response).ok());
  CHECK(response.status_code() == tensorflow::error::FAILED_PRECONDITION);
  CHECK(response.status_error_message().find("{{node read}}") !=
        std::string::npos);
  request.set_session_handle("gone");
  response.Clear();
  CHECK(asked.run(request, response).ok());
  CHECK(response.status_code() == tensorflow::error::ABORTED);
}

TEST_CASE("sessions share variables, unless they are isolated") {
  Asked asked;
  const std::string a = asked.open(), b = asked.open();
  const std::string alone =
      asked.open(test::kGraph, "isolate_session_state: true");
  tensorflow::RunStepResponse response;
  REQUIRE(asked.run(Asked::step(a, {{"x", 5}}, {}, {"init"}), response).ok());
  CHECK(asked.value(Asked::step(b, {}, {"read:0"})) == 5);
  CHECK(asked.error(Asked::step(alone, {}, {"read:0"})).code() ==
        Code::kFailedPrecondition);
  // What a session leaves stays.
  REQUIRE(asked.close(a).ok());
  CHECK(asked.value(Asked::step(b, {}, {"read:0"})) == 5);
}

TEST_CASE("a session replaces a variable of another shape") {
  Asked asked;
  tensorflow::RunStepResponse response;
  const std::string a = asked.open();
  REQUIRE(asked.run(Asked::step(a, {{"x", 5}}, {}, {"init"}), response).ok());
  const std::string b = asked.open(R"(
    node { name: "v" op: "VarHandleOp"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } }
           attr { key: "shared_name" value { s: "v" } } }
    node { name: "read" op: "ReadVariableOp" input: "v"
           attr { key: "dtype" value { type: DT_FLOAT } } })");
  const Status status = asked.error(Asked::step(b, {}, {"read:0"}));
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(status.message().find("float[2]") != std::string_view::npos);
}

TEST_CASE("a fetch of a handle says what it stands for") {
  Asked asked;
  const std::string session = asked.open(std::string(test::kGraph) + R"(
    node { name: "old" op: "FIFOQueue"
           attr { key: "component_types" value { list { type: DT_FLOAT } } }
           attr { key: "container" value { s: "box" } }
           attr { key: "shared_name" value { s: "old queue" } } })");
  tensorflow::RunStepResponse response;
  REQUIRE(asked.run(Asked::step(session, {}, {"v:0", "old:0"}), response)
              .to_string() == "OK");
  const auto& handle = response.tensor(0).tensor();
  CHECK(handle.dtype() == tensorflow::DT_RESOURCE);
  REQUIRE(handle.resource_handle_val_size() == 1);
  CHECK(handle.resource_handle_val(0).name() == "v");
  CHECK(handle.resource_handle_val(0).maybe_type_name() == "variable");
  CHECK(handle.resource_handle_val(0).device().ends_with("CPU:0"));
  // A reference is a container and a name.
  const auto& reference = response.tensor(1).tensor();
  CHECK(reference.dtype() == tensorflow::DT_STRING);
  REQUIRE(reference.string_val_size() == 2);
  CHECK(reference.string_val(0) == "box");
  CHECK(reference.string_val(1) == "old queue");
}

TEST_CASE("a queue without a shared name is the session's own") {
  Asked asked;
  const std::string a = asked.open(), b = asked.open();
  tensorflow::RunStepResponse response;
  REQUIRE(asked.run(Asked::step(a, {{"x", 5}}, {}, {"put"}), response).ok());
  REQUIRE(asked.run(Asked::step(b, {{"x", 6}}, {}, {"put"}), response).ok());
  CHECK(asked.value(Asked::step(b, {}, {"get:0"})) == 6);
  CHECK(asked.value(Asked::step(a, {}, {"get:0"})) == 5);
}

TEST_CASE("an accumulator without a shared name is the session's own") {
  Asked asked;
  const auto open = [&](const std::string& shape) {
    return asked.open(std::string(test::kGraph) + R"(
      node { name: "step" op: "Const"
             attr { key: "dtype" value { type: DT_INT64 } }
             attr { key: "value" value { tensor {
               dtype: DT_INT64 tensor_shape {} int64_val: 0 } } } }
      node { name: "sum" op: "ConditionalAccumulator"
             attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape { )" +
                      shape + R"( } } } }
      node { name: "add" op: "AccumulatorApplyGradient"
             input: "sum" input: "step" input: "x"
             attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "count" op: "AccumulatorNumAccumulated" input: "sum" }
      node { name: "counted" op: "Cast" input: "count"
             attr { key: "SrcT" value { type: DT_INT32 } }
             attr { key: "DstT" value { type: DT_FLOAT } } })");
  };
  const std::string a = open(""), b = open(""), c = open("dim { size: 2 }");
  tensorflow::RunStepResponse response;
  REQUIRE(asked.run(Asked::step(a, {{"x", 5}}, {}, {"add"}), response).ok());
  CHECK(asked.value(Asked::step(a, {}, {"counted:0"})) == 1);
  CHECK(asked.value(Asked::step(b, {}, {"counted:0"})) == 0);
  // One of another shape has nothing to do with it.
  CHECK(asked.value(Asked::step(c, {}, {"counted:0"})) == 0);
}

TEST_CASE("reset empties the default container, and closes all sessions") {
  Asked asked;
  const std::string before = asked.open();
  tensorflow::RunStepResponse response;
  REQUIRE(
      asked.run(Asked::step(before, {{"x", 5}}, {}, {"init"}), response).ok());
  tensorflow::ResetResponse done;
  REQUIRE(
      asked.ask(&SessionService::reset, tensorflow::ResetRequest(), done).ok());
  CHECK(asked.error(Asked::step(before, {}, {"read:0"})).code() ==
        Code::kAborted);
  CHECK(asked.error(Asked::step(asked.open(), {}, {"read:0"})).code() ==
        Code::kFailedPrecondition);
}

TEST_CASE("a run that waits is cancelled by its client, or times out") {
  Asked asked;
  const std::string session = asked.open();
  const auto waits = Asked::step(session, {}, {"get:0"});
  tensorflow::RunStepResponse response;
  actors::CancelToken token;
  auto answer = asked.begin(&SessionService::run_step, waits, response, token);
  token.cancel();
  CHECK(answer.get().code() == Code::kCancelled);

  auto timed = waits;
  timed.mutable_options()->set_timeout_in_ms(20);
  CHECK(asked.error(timed).code() == Code::kDeadlineExceeded);
  const std::string hasty =
      asked.open(test::kGraph, "operation_timeout_in_ms: 20");
  CHECK(asked.error(Asked::step(hasty, {}, {"get:0"})).code() ==
        Code::kDeadlineExceeded);
}

TEST_CASE("the end of a session ends its runs, and so does the service's") {
  Asked asked;
  const std::string session = asked.open();
  const auto waits = Asked::step(session, {}, {"get:0"});
  tensorflow::RunStepResponse response, other;
  auto answer = asked.begin(&SessionService::run_step, waits, response);
  CHECK(asked.close(session).ok());
  CHECK(answer.get().code() == Code::kCancelled);
  const auto last = Asked::step(asked.open(), {}, {"get:0"});
  answer = asked.begin(&SessionService::run_step, last, other);
  asked.service = nullptr;
  CHECK(answer.get().code() == Code::kCancelled);
}

TEST_CASE("a traced run says what its nodes did, and what it was cut into") {
  Asked asked;
  auto request = Asked::step(asked.open(), {{"x:0", 2}}, {"y:0"});
  request.mutable_options()->set_trace_level(
      tensorflow::RunOptions::FULL_TRACE);
  request.mutable_options()->set_output_partition_graphs(true);
  tensorflow::RunStepResponse response;
  REQUIRE(asked.run(request, response).ok());
  const auto& stats = response.metadata().step_stats();
  REQUIRE(stats.dev_stats_size() == 1);
  CHECK(stats.dev_stats(0).device() ==
        "/job:localhost/replica:0/task:0/device:CPU:0");
  bool has_fired = false;
  for (const auto& node : stats.dev_stats(0).node_stats())
    has_fired |= node.node_name() == "y";
  CHECK(has_fired);
  REQUIRE(response.metadata().partition_graphs_size() == 1);
  CHECK(response.metadata().partition_graphs(0).node_size() > 0);
  // The next run is not recorded.
  request.clear_options();
  response.Clear();
  REQUIRE(asked.run(request, response).ok());
  CHECK(!response.has_metadata());
}

TEST_CASE("a client switches rewrites of its graphs off") {
  Asked asked;
  const std::string graph = R"(
    node { name: "two" op: "Const"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor {
             dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
    node { name: "four" op: "AddV2" input: "two" input: "two"
           attr { key: "T" value { type: DT_FLOAT } } })";
  const auto has_sum = [&](const std::string& config) {
    const std::string session = asked.open(graph, config);
    auto request = Asked::step(session, {}, {"four:0"});
    request.mutable_options()->set_output_partition_graphs(true);
    tensorflow::RunStepResponse response;
    REQUIRE(asked.run(request, response).to_string() == "OK");
    CHECK(to_float(response.tensor(0).tensor()) == 4);
    const auto& nodes = response.metadata().partition_graphs(0).node();
    return std::ranges::count(nodes, "AddV2",
                              [](const auto& node) { return node.op(); }) == 1;
  };
  CHECK_FALSE(has_sum(""));
  CHECK(has_sum("graph_options { rewrite_options { constant_folding: OFF } }"));
  CHECK(has_sum(
      "graph_options { rewrite_options { disable_meta_optimizer: true } }"));
  CHECK_FALSE(
      has_sum("graph_options { rewrite_options { constant_folding: ON } }"));
}

TEST_CASE("callables run without names, and may connect tensors") {
  Asked asked;
  tensorflow::MakeCallableRequest make;
  make.set_session_handle(asked.open());
  make.mutable_options()->add_feed("x:0");
  make.mutable_options()->add_fetch("z:0");
  auto& connection = *make.mutable_options()->add_tensor_connection();
  connection.set_from_tensor("y:0");
  connection.set_to_tensor("x2:0");
  tensorflow::MakeCallableResponse made;
  REQUIRE(asked.ask(&SessionService::make_callable, make, made).to_string() ==
          "OK");
  tensorflow::RunCallableRequest call;
  call.set_session_handle(make.session_handle());
  call.set_handle(made.handle());
  *call.add_feed() = scalar(2);
  tensorflow::RunCallableResponse response;
  REQUIRE(asked.ask(&SessionService::run_callable, call, response).ok());
  REQUIRE(response.fetch_size() == 1);
  CHECK(test::to_float(response.fetch(0)) == 9);

  call.clear_feed();
  CHECK(asked.ask(&SessionService::run_callable, call, response).code() ==
        Code::kInvalidArgument);
  tensorflow::ReleaseCallableRequest release;
  release.set_session_handle(make.session_handle());
  release.set_handle(made.handle());
  tensorflow::ReleaseCallableResponse released;
  CHECK(asked.ask(&SessionService::release_callable, release, released).ok());
  // What TensorFlow's servers say of one that is not there.
  CHECK(asked.ask(&SessionService::release_callable, release, released).ok());
  CHECK(asked.ask(&SessionService::run_callable, call, response).code() ==
        Code::kInvalidArgument);
}

TEST_CASE("a long chain of nodes behind an unknown op is set aside") {
  Asked asked;
  std::string graph = R"(node { name: "first" op: "NoSuchOp" })";
  std::string input = "first";
  // Each before what it reads.
  for (int i = 0; i < 20000; ++i) {
    const std::string name = "n" + std::to_string(i);
    graph = R"(node { name: ")" + name + R"(" op: "Neg" input: ")" + input +
            R"(" attr { key: "T" value { type: DT_FLOAT } } })" + graph;
    input = name;
  }
  const std::string session = asked.open(graph);
  CHECK(asked.error(Asked::step(session, {}, {"n19999:0"})).code() ==
        Code::kUnimplemented);
}

TEST_CASE("nodes of unknown ops are no error before a run needs them") {
  Asked asked;
  const std::string session = asked.open(std::string(test::kGraph) + R"(
    node { name: "odd" op: "NoSuchOp" input: "y" }
    node { name: "after" op: "Neg" input: "odd"
           attr { key: "T" value { type: DT_FLOAT } } })");
  CHECK(asked.value(Asked::step(session, {{"x:0", 2}}, {"y:0"})) == 3);
  for (const char* name : {"odd:0", "after:0"}) {
    const Status status =
        asked.error(Asked::step(session, {{"x:0", 2}}, {name}));
    CHECK(status.code() == Code::kUnimplemented);
    CHECK(status.message().find("NoSuchOp") != std::string_view::npos);
    CHECK(status.message().find("{{node odd}}") != std::string_view::npos);
  }
  // What comes later may read them, too.
  REQUIRE(asked
              .extend(session, R"(
    node { name: "later" op: "Neg" input: "after"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "fine" op: "Neg" input: "one"
           attr { key: "T" value { type: DT_FLOAT } } })",
                      0)
              .ok());
  CHECK(asked.value(Asked::step(session, {}, {"fine:0"})) == -1);
  CHECK(asked.error(Asked::step(session, {}, {"later"})).code() ==
        Code::kUnimplemented);
}

TEST_CASE(
    "nodes whose shapes do not fit are no error before a run needs them") {
  Asked asked;
  const std::string session = asked.open();
  const std::string graph = R"(
    node { name: "product" op: "MatMul" input: "sum" input: "one"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "sum" op: "AddV2" input: "one" input: "one"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "reads" op: "Neg" input: "product"
           attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "fine" op: "Neg" input: "one"
           attr { key: "T" value { type: DT_FLOAT } } })";
  REQUIRE(asked.extend(session, graph, 0).to_string() == "OK");
  CHECK(asked.value(Asked::step(session, {}, {"fine:0"})) == -1);
  const Status status = asked.error(Asked::step(session, {}, {"reads:0"}));
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().find("{{node product}}") != std::string_view::npos);
}

TEST_CASE("there is a limit for nodes whose shapes do not fit, which is said") {
  const auto extended = [](int count) {
    std::string graph;
    for (int i = 0; i < count; ++i)
      graph += "node { name: 'product_" + std::to_string(i) +
               "' op: 'MatMul' input: 'one' input: 'one' "
               "attr { key: 'T' value { type: DT_FLOAT } } }";
    Asked asked;
    return asked.extend(asked.open(), graph, 0).to_string();
  };
  CHECK(extended(64) == "OK");
  CHECK(extended(65).find("more than 64 nodes cannot be made; the last: ") !=
        std::string::npos);
}

TEST_CASE("an extension that is refused leaves no function") {
  Asked asked;
  const std::string session = asked.open();
  const auto with_function = [](const std::string& op,
                                const std::string& node) {
    return R"(library { function {
      signature { name: "f" input_arg { name: "a" type: DT_FLOAT }
                  output_arg { name: "b" type: DT_FLOAT } }
      node_def { name: "n" op: ")" +
           op + R"(" input: "a"
                 attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "b" value: "n:y:0" } } }
      node { name: ")" +
           node + R"(" op: "f" input: "x" })";
  };
  // "x" is taken.
  CHECK(asked.extend(session, with_function("Neg", "x"), 0).code() ==
        Code::kAlreadyExists);
  REQUIRE(
      asked.extend(session, with_function("Square", "call"), 0).to_string() ==
      "OK");
  CHECK(asked.value(Asked::step(session, {{"x:0", 3}}, {"call:0"})) == 9);
}

TEST_CASE("devices are listed by their full names") {
  SessionService::Options options;
  options.session.devices = "cpu:2";
  Asked asked(options);
  tensorflow::ListDevicesRequest request;
  tensorflow::ListDevicesResponse response;
  REQUIRE(asked.ask(&SessionService::list_devices, request, response).ok());
  REQUIRE(response.local_device_size() == 2);
  CHECK(response.local_device(1).name() ==
        "/job:localhost/replica:0/task:0/device:CPU:1");
  CHECK(response.local_device(1).device_type() == "CPU");
  CHECK(response.local_device(1).incarnation() != 0);
}

TEST_CASE("sessions are on the workers that the server has") {
  for (const int workers : {1, 3}) {
    SessionService::Options options;
    options.session.workers = workers;
    Asked asked(options);
    const std::string session = asked.open();
    CHECK(asked.value(Asked::step(session, {{"x:0", 2}}, {"y:0"})) == 3);
    tensorflow::PartialRunSetupRequest setup;
    setup.set_session_handle(session);
    setup.add_fetch("one:0");
    tensorflow::PartialRunSetupResponse ready;
    CHECK(asked.ask(&SessionService::partial_run_setup, setup, ready)
              .to_string() == "OK");
  }
}

TEST_CASE("what has no effect is said, once each") {
  std::vector<std::string> said;
  SessionService::Options options;
  options.session.workers = 2;
  options.on_warning = [&](const std::string& text) { said.push_back(text); };
  {
    Asked asked(options);
    for (int i = 0; i < 2; ++i)
      asked.open("",
                 "inter_op_parallelism_threads: 7 "
                 "device_count { key: 'CPU' value: 3 }");
  }
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("device_count") != std::string::npos);
  CHECK(said[1].find("2 workers") != std::string::npos);
}

}  // namespace
}  // namespace tagflow::net
