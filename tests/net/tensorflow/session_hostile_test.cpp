// Messages that are nearly right.
#include <doctest/doctest.h>
#include <google/protobuf/stubs/logging.h>

#include <future>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/net/tensorflow/asked.h"

namespace tagflow::net {
namespace {

using test::Asked;

// Changes, removes, repeats and swaps bytes.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto any = [&](size_t below) {
    return below == 0 ? 0 : size_t(random() % below);
  };
  for (size_t times = 1 + any(4); times > 0 && !bytes.empty(); --times) {
    const size_t at = any(bytes.size());
    switch (any(4)) {
      case 0:
        bytes[at] = char(random());
        break;
      case 1:
        bytes.erase(at, 1 + any(8));
        break;
      case 2:
        bytes.insert(at, bytes.substr(any(bytes.size()), any(40)));
        break;
      default:
        std::swap(bytes[at], bytes[any(bytes.size())]);
    }
  }
  return bytes;
}

// The mutation as a message, if it is one.
template <class Message>
bool parse_mutated(const Message& message, std::mt19937& random,
                   Message* parsed) {
  const google::protobuf::LogSilencer quiet;
  return parsed->ParseFromString(mutated(message.SerializeAsString(), random));
}

SessionService::Options hasty_options() {
  SessionService::Options options;
  options.session.timeout = std::chrono::milliseconds(200);
  options.session.max_nodes = 1000;
  options.session.policy.reads = graph::FileScope::nowhere();
  options.session.policy.writes = graph::FileScope::nowhere();
  options.session.print_sink = [](auto&&...) {};
  options.session.on_warning = [](const std::string&) {};
  options.limits.bytes = 64 << 20;
  return options;
}

TEST_CASE("graphs that are nearly right end no service") {
  Asked asked(hasty_options());
  std::mt19937 random(1);
  tensorflow::CreateSessionRequest right;
  *right.mutable_graph_def() =
      test::from_text<tensorflow::GraphDef>(test::kGraph);
  size_t opened = 0, answered = 0;
  for (int i = 0; i < 20000; ++i) {
    tensorflow::CreateSessionRequest request;
    if (!parse_mutated(right, random, &request)) continue;
    tensorflow::CreateSessionResponse response;
    if (!asked.ask(&SessionService::create_session, request, response).ok())
      continue;
    ++opened;
    for (const char* fetch : {"z:0", "read:0"}) {
      auto run = Asked::step(response.session_handle(),
                             {{"x:0", 2}, {"x2:0", 3}}, {fetch});
      tensorflow::RunStepResponse values;
      answered += asked.run(run, values).ok() ? 1 : 0;
    }
    CHECK(asked.close(response.session_handle()).ok());
  }
  CHECK(opened > 100);
  CHECK(answered > 50);
  CHECK(asked.value(Asked::step(asked.open(), {{"x:0", 2}}, {"y:0"})) == 3);
  CHECK(asked.service->figures().sessions == 1);
}

TEST_CASE("requests that are nearly right end no service") {
  Asked asked(hasty_options());
  std::mt19937 random(2);
  const std::string session = asked.open();
  const auto right =
      Asked::step(session, {{"x:0", 2}, {"x2:0", 3}}, {"y:0", "z:0"}, {"put"});
  size_t answered = 0, refused = 0;
  for (int i = 0; i < 10000; ++i) {
    tensorflow::RunStepRequest request;
    if (!parse_mutated(right, random, &request)) continue;
    request.set_session_handle(session);
    tensorflow::RunStepResponse response;
    (asked.run(request, response).ok() ? answered : refused) += 1;
  }
  CHECK(answered > 0);
  CHECK(refused > 100);
  // A run is counted until its answer has been taken.
  while (asked.service->figures().runs > 0) std::this_thread::yield();
  CHECK(asked.value(Asked::step(session, {{"x:0", 2}}, {"y:0"})) == 3);
}

TEST_CASE("partial runs and callables that are nearly right do neither") {
  Asked asked(hasty_options());
  std::mt19937 random(3);
  const std::string session = asked.open();
  tensorflow::PartialRunSetupRequest setup;
  setup.set_session_handle(session);
  for (const char* name : {"x:0", "x2:0"}) setup.add_feed(name);
  for (const char* name : {"y:0", "z:0"}) setup.add_fetch(name);
  tensorflow::MakeCallableRequest make;
  make.set_session_handle(session);
  make.mutable_options()->add_feed("x:0");
  make.mutable_options()->add_fetch("z:0");
  auto& connection = *make.mutable_options()->add_tensor_connection();
  connection.set_from_tensor("y:0");
  connection.set_to_tensor("x2:0");
  for (int i = 0; i < 400; ++i) {
    tensorflow::PartialRunSetupRequest odd;
    if (parse_mutated(setup, random, &odd)) {
      odd.set_session_handle(session);
      tensorflow::PartialRunSetupResponse response;
      if (asked.ask(&SessionService::partial_run_setup, odd, response).ok()) {
        auto part = Asked::step(session, {{"x:0", 2}}, {"y:0"});
        part.set_partial_run_handle(response.partial_run_handle());
        // Some wait for what does not come.
        actors::CancelToken token;
        tensorflow::RunStepResponse values;
        auto answer =
            asked.begin(&SessionService::run_step, part, values, token);
        token.cancel();
        answer.wait();
      }
    }
    tensorflow::MakeCallableRequest callable;
    if (parse_mutated(make, random, &callable)) {
      callable.set_session_handle(session);
      tensorflow::MakeCallableResponse response;
      static_cast<void>(
          asked.ask(&SessionService::make_callable, callable, response));
    }
  }
  CHECK(asked.value(Asked::step(session, {{"x:0", 2}}, {"y:0"})) == 3);
}

}  // namespace
}  // namespace tagflow::net
