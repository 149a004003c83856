// One step over several workers of this process, through sockets.
#include "net/master/cluster.h"

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <limits>
#include <thread>

#include "actors/watch/observer.h"
#include "tests/actors/process_cases.h"
#include "tests/net/master/sockets.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

// A loop on one device that adds 1 to a number on another one, with a window
// of 32.
struct Trips : actors::Program {
  explicit Trips(int trips, const std::string& home = "/job:worker/task:0",
                 const std::string& away = "/job:worker/task:1") {
    out = while_loop(
        s.named("loop"),
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in.with_device(home), v[0], trips);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope here = in.with_device(home);
          const Scope there = in.with_device(away);
          return {ops::add(here, v[0], 1),
                  ops::identity(here, ops::add(there, v[1], 1.f))};
        },
        {ops::constant(s, 0), ops::constant(s, 1.f)},
        {.parallel_iterations = 32})[1];
    must(s.status());
  }
  Output out;
};

}  // namespace

TEST_CASE("random graphs over workers agree with the reference") {
  actors::processes::check_random_graphs(over_sockets);
  actors::processes::check_random_graphs(over_tcp);
  actors::processes::check_random_graphs(over_tls);
}

TEST_CASE("an error at one worker ends the parts of all, which run again") {
  actors::processes::check_errors(over_sockets);
  actors::processes::check_errors(over_tcp);
  actors::processes::check_errors(over_tls);
}

TEST_CASE(
    "an error of a part names its task, and a dead fetch what came dead") {
  actors::Program p;
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Scope there = p.s.with_device("/job:worker/task:1");
  const Output x = p.input("x", DataType::kInt32);
  ops::floor_div(there.named("quotient"), ops::add(here, x, 1), 0);
  const auto [on_false, on_true] = ops::switch_(
      here.named("way"), x, ops::greater(here, x, ops::constant(here, 0)));
  ops::identity(there.named("taken"), on_true);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  options.passes = PassSet::none();
  const auto session = actors::make_session(options, p.graph);
  const auto fails_with = [&](const std::string& fetch, std::string_view part) {
    const Status status =
        session->run({{"x", Tensor::scalar<int32_t>(-1)}}, {fetch}).status();
    CHECK_MESSAGE(status.message().find(part) != std::string::npos,
                  status.to_string());
  };
  fails_with("quotient", "device /job:worker/task:1/device:CPU:0)");
  fails_with("taken",
             "received a dead token of \"way:1\" from "
             "/job:worker/replica:0/task:0/device:CPU:0");
}

TEST_CASE("a RemoteCall runs at the worker that its target names") {
  actors::Program p;
  define_function(p.s,
                  {.name = "quotient",
                   .args = {{"a", DataType::kInt32, {}}},
                   .results = {{DataType::kInt32, {}}},
                   .body = [](const Scope& in, const Outputs& a) -> Outputs {
                     return ops::floor_div(in, 12, a[0]);
                   }});
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Output x = p.input("x", DataType::kInt32);
  const Output target = ops::constant(here, "/job:worker/task:1/device:CPU:0");
  const std::vector<DataType> types{DataType::kInt32};
  here.named("y").op(
      "RemoteCall", {target, x},
      {{"Tin", types}, {"Tout", types}, {"f", FunctionRef{"quotient"}}});
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  const auto four = Tensor::scalar<int32_t>(4);
  CHECK(identical(actors::must_run(*session, {{"x", four}}, {"y"})[0],
                  Tensor::scalar<int32_t>(3)));
  const Status by_zero =
      session->run({{"x", Tensor::scalar<int32_t>(0)}}, {"y"}).status();
  CHECK_MESSAGE(
      contains(by_zero.message(), "device /job:worker/task:1/device:CPU:0)"),
      by_zero.to_string());
}

TEST_CASE("a worker obeys the limits and the hand-off of the session") {
  actors::Program p;
  define_function(
      p.s,
      {.name = "down",
       .args = {{"n", DataType::kInt32, {}}},
       .results = {{DataType::kInt32, {}}},
       .body = [](const Scope& in, const Outputs& a) -> Outputs {
         return cond(
             in, ops::less(in, a[0], 1),
             [&](const Scope& s) -> Outputs { return ops::identity(s, a[0]); },
             [&](const Scope& s) -> Outputs {
               return call(s, "down", {ops::sub(s, a[0], 1)});
             });
       }});
  const Output x = p.input("x", DataType::kInt32);
  const Scope there = p.s.with_device("/job:worker/task:1");
  ops::identity(there.named("y"), call(there, "down", {x})[0]);
  must(p.s.status());
  const auto backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  for (const auto hand_off :
       {actors::HandOff::kDirect, actors::HandOff::kMailbox}) {
    actors::SessionOptions options;
    options.backend = backend;
    options.hand_off = hand_off;
    options.max_call_depth = 20;
    const auto session = actors::make_session(options, p.graph);
    CHECK(session->run({{"x", Tensor::scalar(10)}}, {"y"}).ok());
    const Status deep =
        session->run({{"x", Tensor::scalar(30)}}, {"y"}).status();
    CHECK_MESSAGE(deep.code() == Code::kResourceExhausted, deep.to_string());
  }
}

TEST_CASE("a lossy transfer between workers carries 16 bits") {
  actors::Program p;
  const Output x = p.input("x", DataType::kFloat);
  const Output one = ops::neg(p.s.with_device("/job:worker/task:0"), x);
  ops::neg(p.s.with_device("/job:worker/task:1").named("y"), one);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  options.passes = PassSet::none();
  options.lossy = {"*"};
  const auto session = actors::make_session(options, p.graph);
  const auto fed = Tensor::vector<float>({1.F / 3, 1.5F});
  const auto cut = Tensor::vector<float>(
      {std::bit_cast<float>(std::bit_cast<uint32_t>(1.F / 3) & 0xffff0000U),
       1.5F});
  CHECK(identical(actors::must_run(*session, {{"x", fed}}, {"y"})[0], cut));
}

TEST_CASE("a variable of one worker keeps its value from step to step") {
  actors::processes::check_variables(over_sockets);
}

TEST_CASE("a wait at one worker is named by the step, and can be cancelled") {
  actors::processes::check_waits(over_sockets);
}

TEST_CASE("tensors of 64 MiB go to a worker, between two, and back") {
  actors::Program p;
  const Output x = p.input("x", DataType::kFloat);
  const Output there = ops::add(p.s.with_device("/job:worker/task:1"), x, 1.f);
  const Output here =
      ops::add(p.s.with_device("/job:worker/task:0"), there, -1.f);
  ops::identity(p.s.with_device("/job:worker/task:1").named("y"), here);
  must(p.s.status());
  actors::SessionOptions options;
  options.passes = PassSet::none();
  Tensor value = Tensor::make(DataType::kFloat, {16 << 20});
  const auto flat = value.mutable_flat<float>();
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = float(i % 1000);
  for (const auto connect : {over_sockets, over_tls}) {
    CAPTURE((connect == over_tls));
    options.backend = connect(2, "cpu:1", 1, 0);
    const auto session = actors::make_session(options, p.graph);
    const auto results = actors::must_run(*session, {{"x", value}}, {"y"});
    CHECK(identical(results[0], value));
  }
}

TEST_CASE("strings, bools and scalars without elements arrive as they were") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const Scope here = p.s.with_device("/job:worker/task:0");
  const Tensor values[] = {
      Tensor::vector<std::string>({"a", std::string(40'000, 'b'), ""}),
      Tensor::vector<bool>({true, false}), Tensor::make(DataType::kInt64, {0})};
  std::vector<actors::Feed> feeds;
  std::vector<std::string> fetches;
  for (size_t i = 0; i < std::size(values); ++i) {
    const std::string name = fmt::format("x{}", i);
    const Output x = p.input(name.c_str(), values[i].dtype());
    fetches.push_back(fmt::format("y{}", i));
    ops::identity(here.named(fetches.back()), ops::identity(there, x));
    feeds.push_back({name, values[i]});
  }
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  options.passes = PassSet::none();
  const auto session = actors::make_session(options, p.graph);
  const auto results = actors::must_run(*session, feeds, fetches);
  for (size_t i = 0; i < std::size(values); ++i)
    CHECK(identical(results[i], values[i]));
}

TEST_CASE("10,000 trips of a loop cross two workers with a window of 32") {
  const Trips p(10'000);
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  const auto results = actors::must_run(*session, {}, {p.out.name()});
  CHECK(must(results[0].item<float>()) == 10'001.f);
}

TEST_CASE("statistics of a step over workers are the sums of all its parts") {
  const auto stats_of = [](const Trips& p, int workers, const char* devices) {
    actors::SessionOptions options;
    options.backend = std::make_shared<Sockets>(workers, devices, 1);
    options.passes = PassSet::none();
    const auto session = actors::make_session(options, p.graph);
    actors::RunStats stats;
    must(session->run({}, {p.out.name()}, {}, actors::within_a_minute(),
                      &stats));
    return stats;
  };
  const auto together = stats_of(Trips(10, "/job:worker/task:0/device:CPU:0",
                                       "/job:worker/task:0/device:CPU:1"),
                                 1, "cpu:2");
  const auto apart = stats_of(Trips(10), 2, "cpu:1");
  CHECK(apart.fired == together.fired);
  CHECK(apart.dead == together.dead);
  CHECK(apart.frames == together.frames);
  CHECK(apart.iterations == together.iterations);
  CHECK(together.iterations >= 20);
}

TEST_CASE("an observer of a run over workers is refused as local") {
  const Trips p(3);
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(2, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  actors::RunOptions run = actors::within_a_minute();
  actors::Observer observer;
  run.observer = &observer;
  const Status status = session->run({}, {p.out.name()}, {}, run).status();
  CHECK(status.code() == Code::kUnimplemented);
  CHECK(contains(status.message(), "an observer is local"));
  const auto results = actors::must_run(*session, {}, {p.out.name()});
  CHECK(must(results[0].item<float>()) == 4.f);
}

TEST_CASE("a worker that is closed ends a loop that crosses it") {
  const Trips p(std::numeric_limits<int32_t>::max());
  for (const size_t victim : {0, 1}) {
    const auto sockets = std::make_shared<Sockets>(2, "cpu:1", 1);
    actors::SessionOptions options;
    options.backend = sockets;
    const auto session = actors::make_session(options, p.graph);
    Status status;
    std::thread runner([&] {
      status = session->run({}, {p.out.name()}, {}, actors::within_a_minute())
                   .status();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sockets->close_worker(victim);
    runner.join();
    INFO(status.to_string());
    CHECK(status.code() == Code::kUnavailable);
    CHECK(contains(status.message(), fmt::format("task:{}", victim)));
  }
}

TEST_CASE(
    "a worker that is closed fails the step that uses it, and later ones") {
  const actors::processes::Waiting p;
  const auto sockets = std::make_shared<Sockets>(2, "cpu:1", 1);
  actors::SessionOptions options;
  options.backend = sockets;
  const auto session = actors::make_session(options, p.graph);
  Status status;
  {
    std::thread runner([&] {
      status =
          session->run({}, {"taken"}, {}, actors::within_a_minute()).status();
    });
    // It may also be closed before the step has begun: the answer is the same.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    sockets->close_worker(1);
    runner.join();
  }
  INFO(status.to_string());
  CHECK(status.code() == Code::kUnavailable);
  CHECK(contains(status.message(), "/job:worker/task:1"));
  const Status later =
      session->run({}, {"taken"}, {}, actors::within_a_minute()).status();
  CHECK(later.code() == Code::kUnavailable);
  CHECK(contains(later.message(), "/job:worker/task:1"));
}

TEST_CASE("workers forget a master that leaves, and serve the next one") {
  actors::Program p;
  const Scope there = p.s.with_device("/job:worker/task:1");
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(there.named("init"), v, 1);
  ops::identity(p.s.with_device("/job:worker/task:0").named("read"),
                ops::read(there, v));
  must(p.s.status());
  const auto sockets = std::make_shared<Sockets>(2, "cpu:1", 1);
  actors::SessionOptions options;
  options.backend = sockets;
  {
    const auto session = actors::make_session(options, p.graph);
    must(session->run({}, {}, {"init"}, actors::within_a_minute()));
    CHECK(must(actors::must_run(*session, {}, {"read"})[0].item<int32_t>()) ==
          1);
  }
  sockets->reconnect();
  const auto session = actors::make_session(options, p.graph);
  CHECK_FALSE(session->run({}, {"read"}, {}, actors::within_a_minute()).ok());
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
}

TEST_CASE("a worker refuses a second master, and one with another secret") {
  const Sockets sockets(1, "cpu:1", 1);
  const Status second = Cluster::connect(sockets.options()).status();
  INFO(second.to_string());
  CHECK(contains(second.message(), "/job:worker/task:0"));
  CHECK(contains(second.message(), "the worker has another master"));
  ClusterOptions other = sockets.options();
  other.secret = "another secret";
  CHECK_FALSE(Cluster::connect(other).ok());
  other.secret = "";
  CHECK(Cluster::connect(other).status().code() == Code::kInvalidArgument);
  other = sockets.options();
  other.members[0].task.index = 3;
  CHECK_FALSE(Cluster::connect(other).ok());
}

TEST_CASE("a graph that reads files is refused by a worker") {
  actors::Program p;
  ops::identity(p.s.with_device("/job:worker/task:0").named("y"),
                p.s.with_device("/job:worker/task:0")
                    .op("ReadFile", {p.input("name", DataType::kString)})[0]);
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = std::make_shared<Sockets>(1, "cpu:1", 1);
  const auto session = actors::make_session(options, p.graph);
  const Status status =
      session
          ->run({{"name", Tensor::scalar(std::string("/etc/hostname"))}}, {"y"},
                {}, actors::within_a_minute())
          .status();
  INFO(status.to_string());
  CHECK(status.code() == Code::kPermissionDenied);
}

}  // namespace tagflow::net
