// The service without sockets: its clients, limits and turns.
#include "net/service/master_service.h"

#include <doctest/doctest.h>

#include <limits>
#include <thread>

#include "tests/actors/pending.h"
#include "tests/failing_new.h"
#include "tests/net/service/service.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

// A variable "v" of a scalar, "set" to 5 and read by "get"; an endless "loop";
// and a queue, into which "put" puts 7, which "take" takes.
struct Shared : actors::Program {
  Shared() {
    const ops::Variable v = ops::variable(s.named("v"), DataType::kFloat, {});
    ops::assign(s.named("set"), v, ops::constant(s, 5.f));
    ops::identity(s.named("get"), ops::read(s, v));
    ops::identity(s.named("loop"),
                  while_loop(
                      s,
                      [](const Scope& in, const Outputs& i) {
                        return ops::less(in, i[0],
                                         std::numeric_limits<int32_t>::max());
                      },
                      [](const Scope& in, const Outputs& i) -> Outputs {
                        // The sign changes, so that it has no end.
                        return {ops::mul(in, i[0], -1)};
                      },
                      {ops::constant(s, 1)})[0]);
    const ops::Queue queue =
        ops::fifo_queue(s.named("queue"), {DataType::kFloat}, {.capacity = 8});
    ops::enqueue(s.named("put"), queue, {ops::constant(s, 7.f)});
    ops::identity(s.named("take"), ops::dequeue(s, queue)[0]);
    must(s.status());
  }
};

std::string message(const Status& status) {
  return std::string(status.message());
}

}  // namespace

TEST_CASE("two clients of a service share the variables of a container") {
  const auto service = service_of();
  const Shared shared;
  ServedClient one(*service, shared.graph), two(*service, shared.graph);
  must(one.run({}, {"set"}));
  CHECK(must(two.run({"get"}))[0].item<float>().value() == 5.f);
  must(two.client->reset({""}));
  CHECK(one.run({"get"}).status().code() == Code::kFailedPrecondition);
}

TEST_CASE("a client that leaves ends its runs, and leaves its variables") {
  const auto service = service_of();
  const Shared shared;
  ServedClient other(*service, shared.graph);
  Answered endless, waiting;
  {
    ServedClient one(*service, shared.graph);
    must(one.run({}, {"set"}));
    must(one.client->run(one.prepare({"loop"}), 100, {}, endless.done()));
    must(one.client->run(one.prepare({"take"}), 101, {}, waiting.done()));
    one.client->leave();
    CHECK(endless.is_there());
    CHECK(waiting.is_there());
    CHECK(one.client->run(2, 102, {}, endless.done()).code() ==
          Code::kCancelled);
    CHECK(one.client->perform(open_request(9)).status().code() ==
          Code::kCancelled);
  }
  CHECK(endless.wait().status().code() == Code::kCancelled);
  CHECK(waiting.wait().status().code() == Code::kCancelled);
  CHECK(must(other.run({"get"}))[0].item<float>().value() == 5.f);
}

TEST_CASE("a run that a client cancels ends, and others of it go on") {
  const auto service = service_of({.active_runs = 2});
  const Shared shared;
  ServedClient one(*service, shared.graph);
  const uint64_t loop = one.prepare({"loop"});
  Answered runs[3];
  for (uint64_t i = 0; i < 3; ++i)
    must(one.client->run(loop, i, {}, runs[i].done()));
  // The third one waits for its turn.
  one.client->cancel(2, error(Code::kAborted, "not any more"));
  CHECK(contains(message(runs[2].wait().status()),
                 "not any more; it was still waiting for its turn"));
  CHECK(!runs[1].is_there());
  one.client->cancel(0, error(Code::kAborted, "nor this"));
  CHECK(runs[0].wait().status().code() == Code::kCancelled);
  CHECK(!runs[1].is_there());
  one.client->cancel(7, error(Code::kAborted, "it is not there"));
}

TEST_CASE("without memory a run is refused or fails, and its client goes on") {
  const auto service = service_of({.active_runs = 1});
  const Shared shared;
  ServedClient one(*service, shared.graph);
  must(one.run({}, {"set"}));
  const uint64_t get = one.prepare({"get"});
  bool has_failed = true;
  for (int64_t k = 1; has_failed; ++k) {
    CAPTURE(k);
    Answered answer;
    actors::Done done = answer.done();
    FailAllocation fail(k);
    const Status started =
        one.client->run(get, uint64_t(k), {}, std::move(done));
    if (started.ok()) {
      CHECK(actors::comes_true([&] { return answer.is_there(); }));
    }
    fail.stop();
    has_failed = fail.failed();
    const Status ended = started.ok() ? answer.wait().status() : started;
    INFO(ended.to_string());
    CHECK((ended.ok() || ended.code() == Code::kResourceExhausted));
    CHECK((ended.ok() || has_failed));
    // Its number is free again, and it holds no place.
    Answered next;
    must(one.client->run(get, uint64_t(k), {}, next.done()));
    CHECK(must(next.wait())[0].item<float>().value() == 5.f);
  }
  CHECK(service->figures().runs_begun == 0);
  CHECK(service->figures().feed_bytes == 0);
}

TEST_CASE("to end what is under way takes no memory of the service") {
  const auto service = service_of({.active_runs = 2});
  const Shared shared;
  ServedClient one(*service, shared.graph);
  const uint64_t loop = one.prepare({"loop"});
  Answered runs[6];
  for (uint64_t i = 0; i < 6; ++i)
    must(one.client->run(loop, i, {}, runs[i].done()));
  {
    FailAllocation fail(1, 1000);
    one.client->abandon();
  }
  one.client->leave();
  for (Answered& run : runs) CHECK(!run.wait().ok());
}

TEST_CASE("without memory a client, a session, a signature are refused") {
  const auto service = service_of();
  const Shared shared;
  ServedClient one(*service, shared.graph);
  uint64_t number = 100;
  const auto check = [&](int64_t k, const FailAllocation& fail,
                         const Status& status) {
    CAPTURE(k);
    INFO(status.to_string());
    CHECK((status.ok() || status.code() == Code::kResourceExhausted));
    CHECK((status.ok() || fail.failed()));
    return fail.failed();
  };
  bool has_failed = true;
  for (int64_t k = 1; has_failed; ++k) {
    FailAllocation fail(k);
    const Status status = service->admit().status();
    fail.stop();
    has_failed = check(k, fail, status);
  }
  const auto perform_all = [&](const auto& make_request) {
    has_failed = true;
    for (int64_t k = 1; has_failed; ++k) {
      const ServiceRequest request = make_request();
      FailAllocation fail(k);
      const Status status = one.client->perform(request).status();
      fail.stop();
      has_failed = check(k, fail, status);
      // Whatever became of it, it can be released.
      CHECK(one.client->release(number++).ok());
    }
  };
  perform_all([&] { return open_request(number); });
  perform_all([&] { return prepare_request(1, number, {"get"}); });
  // The service is as it was.
  must(one.run({}, {"set"}));
  CHECK(must(one.run({"get"}))[0].item<float>().value() == 5.f);
  CHECK(service->figures().clients == 1);
}

TEST_CASE("a client beyond its limits is refused, and others are not") {
  const auto service = service_of(
      {.clients = 2, .sessions = 2, .signatures = 3, .runs = 1, .bytes = 100});
  const Shared shared;
  Graph fed;
  const Scope s(fed);
  ops::identity(s.named("y"), ops::placeholder(s.named("x"), DataType::kFloat));
  must(s.status());
  ServedClient one(*service, fed), two(*service, shared.graph);
  CHECK(contains(message(service->admit().status()), "2 clients are here"));

  must(one.client->perform(open_request(50)));
  CHECK(contains(message(one.client->perform(open_request(51)).status()),
                 "the client has 2 sessions, the limit"));
  must(one.client->release(51));
  must(one.client->release(50));
  must(one.client->perform(open_request(52)));

  const uint64_t y = one.prepare({"y"}, {}, {"x"});
  Answered answered;
  const auto floats = [](int64_t count) {
    return std::vector<Tensor>{Tensor::make(DataType::kFloat, {count})};
  };
  const Status large = one.client->run(y, 1, floats(26), answered.done());
  CHECK(large.code() == Code::kResourceExhausted);
  CHECK(contains(message(large), "104 more are above the limit of 100"));
  // Before it waits for its turn.
  CHECK(contains(message(one.client->run(y, 1, {}, answered.done())),
                 "has 1 feeds, not 0"));
  must(one.client->run(y, 2, floats(25), answered.done()));
  must(answered.wait());

  const uint64_t loop = two.prepare({"loop"});
  Answered endless;
  must(two.client->run(loop, 1, {}, endless.done()));
  CHECK(contains(message(two.client->run(loop, 2, {}, endless.done())),
                 "the client has 1 runs under way, the limit"));
  two.prepare({"get"});
  two.prepare({"take"});
  CHECK(contains(
      message(two.client->perform(prepare_request(1, 90, {"get"})).status()),
      "the client has 3 signatures, the limit"));
}

TEST_CASE("a client at its limit may ask, and release, again and again") {
  const auto service = service_of({.signatures = 2});
  const Shared shared;
  ServedClient one(*service, shared.graph);
  const uint64_t first = one.prepare({"get"});
  one.prepare({"take"});
  for (uint64_t number = 90; number < 96; ++number) {
    CHECK(one.client->perform(prepare_request(1, number, {"loop"}))
              .status()
              .code() == Code::kResourceExhausted);
    must(one.client->release(number));
  }
  must(one.client->release(first));
  must(one.client->perform(prepare_request(1, 96, {"loop"})));
}

TEST_CASE(
    "a run that waits for a queue leaves its turn to the one that fills") {
  const auto service = service_of({.active_runs = 1});
  const Shared shared;
  ServedClient one(*service, shared.graph), two(*service, shared.graph);
  Answered taken, put;
  must(one.client->run(one.prepare({"take"}), 1, {}, taken.done()));
  must(two.client->run(two.prepare({}, {"put"}), 1, {}, put.done()));
  CHECK(service->has_queue());
  while (!put.is_there()) {
    service->look();
    std::this_thread::yield();
  }
  must(put.wait());
  CHECK(must(taken.wait())[0].item<float>().value() == 7.f);
  CHECK(!service->has_queue());
}

TEST_CASE("what a client has released is not made, and a number is used once") {
  const auto service = service_of();
  const Shared shared;
  ServedClient one(*service, shared.graph);
  // A Release may overtake what was asked for.
  must(one.client->release(70));
  CHECK(one.client->perform(prepare_request(1, 70, {"get"})).status().code() ==
        Code::kCancelled);
  must(one.client->perform(prepare_request(1, 71, {"get"})));
  CHECK(one.client->perform(prepare_request(1, 71, {"get"})).status().code() ==
        Code::kAlreadyExists);
  must(one.client->release(71));
  Answered answered;
  CHECK(contains(message(one.client->run(71, 1, {}, answered.done())),
                 "executable 71 is not prepared"));
  CHECK(one.client->perform(prepare_request(8, 72, {"get"})).status().code() ==
        Code::kNotFound);
  CHECK(one.client->perform(prepare_request(1, 73, {"gett"})).status().code() ==
        Code::kNotFound);
  CHECK(one.client->perform(extend_request(8, shared.graph)).status().code() ==
        Code::kNotFound);
}

TEST_CASE("the policy of a service refuses ops of its clients' graphs") {
  MasterService::Options options;
  options.session.policy.denied = {"FIFOQueueV2"};
  const auto service = must(MasterService::create(std::move(options)));
  const auto client = must(service->admit());
  must(client->perform(open_request(1)));
  const Shared shared;
  const Status refused =
      client->perform(extend_request(1, shared.graph)).status();
  CHECK(refused.code() == Code::kPermissionDenied);
  CHECK(contains(message(refused), "queue"));
}

}  // namespace tagflow::net
