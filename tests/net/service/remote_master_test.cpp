// Clients of a master service over sockets, whose workers are of this process.
#include "net/service/remote_master.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <thread>

#include "actors/plan/distribute.h"
#include "net/transfer/channel.h"
#include "net/transfer/identity.h"
#include "net/transfer/reports.h"
#include "tests/actors/pending.h"
#include "tests/net/service/door.h"
#include "tests/net/service/service.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

constexpr char kTask0[] = "/job:worker/task:0";
constexpr char kTask1[] = "/job:worker/task:1";

std::string message(const Status& status) {
  return std::string(status.message());
}

// A replica of between-graph training: "step" adds x to the variable "v" of
// task 0, with work on `home`; "get" reads it.
struct Replica : actors::Program {
  explicit Replica(const char* home) {
    const Scope server = s.with_device(kTask0);
    const ops::Variable v =
        ops::variable(server.named("v"), DataType::kFloat, {});
    ops::assign(server.named("init"), v, ops::constant(server, 0.f));
    const Output x = ops::placeholder(s.with_device(home).named("x"),
                                      DataType::kFloat, PartialShape::scalar());
    ops::assign_add(server.named("step"), v,
                    ops::mul(s.with_device(home), x, 2.f));
    ops::identity(server.named("get"), ops::read(server, v));
    must(s.status());
  }
};

// while true: one step of the loop on each of both workers.
struct Endless : actors::Program {
  Endless() {
    const Outputs last = while_loop(
        s.with_device(kTask0).named("loop"),
        [](const Scope& in, const Outputs& i) {
          return ops::less(in, i[0], std::numeric_limits<int32_t>::max());
        },
        [](const Scope& in, const Outputs& i) -> Outputs {
          return {
              ops::identity(in, ops::mul(in.with_device(kTask1), i[0], -1))};
        },
        {ops::constant(s, 1)});
    out = last[0].name();
    must(s.status());
  }
  std::string out;
};

float value_of(const Result<std::vector<Tensor>>& fetched) {
  return must(fetched)[0].item<float>().value();
}

// As long as it takes.
void await(const std::function<bool()>& is_so) {
  while (!is_so()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("replicas of two clients update one variable of a container") {
  bool has_local_door = true, has_tls = false;
  SUBCASE("through the local door") {}
  SUBCASE("over TCP") { has_local_door = false; }
  SUBCASE("with certificates") {
    has_local_door = false;
    has_tls = true;
  }
  const Served served(2, {}, has_local_door, has_tls);
  const Replica one(kTask0), two(kTask1);
  const auto chief = actors::make_session(served.client(), one.graph);
  const auto other = actors::make_session(served.client(), two.graph);
  must(chief->run({}, {}, {"init"}));
  std::thread steps([&] {
    for (int i = 0; i < 20; ++i)
      must(other->run({{"x", Tensor::scalar(1.f)}}, {}, {"step"}));
  });
  for (int i = 0; i < 20; ++i)
    must(chief->run({{"x", Tensor::scalar(10.f)}}, {}, {"step"}));
  steps.join();
  CHECK(value_of(chief->run({}, {"get"})) == 440.f);
  CHECK(value_of(other->run({}, {"get"})) == 440.f);
  CHECK(served.door->num_clients() == 2);
}

TEST_CASE("a session at a service grows, and has large feeds and fetches") {
  const Served served(2);
  actors::Program program;
  const Output x = program.input("x", DataType::kFloat);
  ops::add(program.s.with_device(kTask1).named("y"), x, 1.f);
  must(program.s.status());
  const auto session = actors::make_session(served.client(), program.graph);
  Tensor large = Tensor::make(DataType::kFloat, {1 << 20});
  std::fill_n(large.mutable_data<float>(), 1 << 20, 2.f);
  const auto sums = must(session->run({{"x", large}}, {"y"}));
  CHECK(sums[0].data<float>()[(1 << 20) - 1] == 3.f);
  must(session->extend(
      std::vector<NodeDef>{{.name = "z", .op = "Identity", .inputs = {"y"}}}));
  actors::RunStats stats;
  CHECK(value_of(session->run({{"x", Tensor::scalar(4.f)}}, {"z"}, {}, {},
                              &stats)) == 5.f);
  CHECK(stats.fired > 0);
  CHECK(contains(message(session->run({}, {"zz"}).status()), "zz"));
  CHECK(session->explain({"x"}, {"y"}).status().code() == Code::kUnimplemented);
}

TEST_CASE("a client gets what the workers of a service record of its run") {
  const Served served(2, {.traces = 1});
  actors::Program program;
  const Scope here = program.s.with_device(kTask0);
  const Scope there = program.s.with_device(kTask1);
  const Output n = program.input("n", DataType::kInt32);
  const Output last = while_loop(
      here.named("loop"),
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                ops::mul(in.with_device(kTask1), v[1], 2.f)};
      },
      {ops::constant(here, 0), ops::constant(here, 1.f)})[1];
  const ops::Queue queue =
      ops::fifo_queue(there.named("q"), {DataType::kFloat});
  ops::dequeue(there.named("take"), queue);
  must(program.s.status());
  actors::Trace trace, cancelled;  // they outlive the session
  const auto session = actors::make_session(served.client(), program.graph);
  const auto run = [&] {
    actors::RunOptions traced = actors::within_a_minute();
    traced.trace = &trace;
    return session->run({{"n", Tensor::scalar<int32_t>(5)}}, {last.name()}, {},
                        traced);
  };
  CHECK(value_of(run()) == 32.f);
  std::map<std::string, int> firings;  // by device
  for (const auto& track : trace.tracks())
    for (const actors::TraceEvent& event : track)
      if (event.kind == actors::TraceEvent::kNode &&
          (event.node->op == "Less" || event.node->op == "Mul"))
        ++firings[std::string(event.device)];
  CHECK(firings == std::map<std::string, int>{
                       {"/job:worker/replica:0/task:0/device:CPU:0", 6},
                       {"/job:worker/replica:0/task:1/device:CPU:0", 5}});

  // Only so many runs are recorded at once, also if they wait.
  actors::RunOptions traced = actors::within_a_minute();
  traced.trace = &cancelled;
  actors::Pending pending(*session, "take", traced);
  CHECK(actors::comes_true(
      [&] { return run().status().code() == Code::kResourceExhausted; }));
  pending.token.cancel();
  CHECK(pending.get().status().code() == Code::kCancelled);
}

TEST_CASE("a client records the runs of others") {
  const Served served(2);
  const Endless endless;
  actors::Program program;
  ops::neg(program.s.with_device(kTask1).named("y"),
           program.input("x", DataType::kFloat));
  must(program.s.status());
  const auto session = actors::make_session(served.client(), program.graph);
  const auto run = [&] {
    return value_of(session->run({{"x", Tensor::scalar(4.f)}}, {"y"}));
  };
  const auto watcher = must(RemoteMaster::connect(served.address()));
  actors::Trace trace;
  CHECK(must(watcher->watch(trace, 3, [&] { return run() == -4.f; })) == 3);
  int firings = 0;
  for (const auto& track : trace.tracks())
    for (const actors::TraceEvent& event : track)
      if (event.kind == actors::TraceEvent::kNode) {
        CHECK(event.node->name == "y");
        ++firings;
      }
  CHECK(firings == 3);
  // Nobody runs anything; and nobody waits for a run that is not over.
  CHECK(must(watcher->watch(trace, 3, [] { return false; })) == 0);
  const auto other = actors::make_session(served.client(), endless.graph);
  actors::Trace none;
  std::optional<actors::Pending> pending;
  int looks = 0;
  CHECK(must(watcher->watch(none, 3, [&] {
          if (!pending) pending.emplace(*other, endless.out);
          return ++looks < 20;
        })) == 0);
  pending->token.cancel();
  CHECK(pending->get().status().code() == Code::kCancelled);
  CHECK(run() == -4.f);
}

TEST_CASE("a client that takes no results is refused further runs") {
  const Served served(1, {.bytes = 1 << 20}, false);
  actors::Program program;
  ops::identity(program.s.named("y"), ops::fill(program.s, {int64_t{16} << 20},
                                                ops::constant(program.s, 1.f)));
  must(program.s.status());
  // By hand: of its two connections, it reads one.
  const IoThreads threads = must(IoThreads::start());
  const Identity identity = must(
      make_identity(Role::kClient, {"client", 0}, kTestCluster, kTestSecret));
  Pairing::Pair pair = must(connect_pair(
      *threads.bulk, {"localhost", served.door->port()}, identity, 0));
  std::atomic<bool> is_over{false};
  std::thread writer([&, socket = pair.bulk.descriptor()] {
    uint32_t number = 0;
    const auto send = [&](std::string frame, std::string_view rest) {
      number_frame({frame.data(), frame.size()}, number++, rest);
      frame += rest;
      CHECK(::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) ==
            ssize_t(frame.size()));
    };
    for (const ServiceRequest& request :
         {open_request(1), extend_request(1, program.graph),
          prepare_request(1, 2, {"y"})}) {
      const std::string bytes = must(bytes_of(request));
      const ObjectId object{number + 1};
      send(must(frame_of(
               Begin{object, ObjectKind::kRegister, bytes.size(), {}})),
           {});
      Writer chunk(kFrameHeader);
      Chunk{object, 0}.write(chunk);
      must(begin_frame(FrameKind::kChunk, chunk.bytes(), bytes.size()));
      send(chunk.bytes(), bytes);
    }
    while (!is_over) {
      send(must(frame_of(Ping{number, 0})), {});
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  SmallLink small(*threads.small, std::move(pair.small), {});
  std::promise<void> prepared;
  std::promise<Status> first, second;
  small.start(
      {.on_frame = [&](const Frame& frame) -> Status {
         if (frame.kind == FrameKind::kReply) {
           const Reply reply = must(parse_body<Reply>(frame.body));
           must(status_of(reply.outcome));
           if (reply.request == 2) prepared.set_value();
         }
         if (frame.kind == FrameKind::kDone) {
           const net::Done done = must(parse_body<net::Done>(frame.body));
           (done.step == 1 ? first : second).set_value(status_of(done.outcome));
         }
         return {};
       },
       .on_lost = [](const Status&) {}});
  prepared.get_future().get();
  std::string run = must(frame_of(Run{.executable = 2, .step = 1}));
  small.send(run);
  must(first.get_future().get());
  run = must(frame_of(Run{.executable = 2, .step = 2}));
  small.send(run);
  const Status refused = second.get_future().get();
  is_over = true;
  writer.join();
  CHECK(refused.code() == Code::kResourceExhausted);
  CHECK(contains(message(refused), "has not taken 67108864 bytes"));
}

TEST_CASE("results that cannot be sent are not waited for") {
  const auto service = service_of({.bytes = 1 << 20});
  const auto door = door_of(*service);
  const actors::SessionOptions client = client_at(address_of(*door));
  actors::Program program;
  const Scope& s = program.s;
  ops::identity(s.named("y"),
                ops::fill(s, {int64_t{1} << 17}, ops::constant(s, 1.f)));
  s.named("list").op("EmptyTensorList", {-1, -1},
                     {{"element_dtype", DataType::kFloat}});
  must(s.status());
  const auto session = actors::make_session(client, program.graph);
  // Each has half of the limit that would not have been taken.
  for (int i = 0; i < 4; ++i) {
    const Status refused = session->run({}, {"y", "list"}).status();
    CHECK(refused.code() == Code::kUnimplemented);
    CHECK(contains(message(refused), "cannot leave its process"));
  }
  CHECK(must(session->run({}, {"y"}))[0].dim(0) == 1 << 17);
}

TEST_CASE(
    "time-outs and cancellations of a client end its run at the workers") {
  const Served served(2);
  const Endless endless;
  const auto session = actors::make_session(served.client(), endless.graph);
  // It is compiled before, so that the time is that of the run.
  const auto call = must(session->make_callable({}, {endless.out}));
  constexpr std::chrono::milliseconds kTime{50 * kSlowness};
  const Status late = call({}, {.timeout = kTime}).status();
  CHECK(late.code() == Code::kDeadlineExceeded);
  CHECK(contains(message(late), "/job:worker/task:1"));
  actors::CancelToken token;
  std::thread later([&] { token.cancel(); });
  CHECK(
      session->run({}, {endless.out}, {}, {.cancel = token}).status().code() ==
      Code::kCancelled);
  later.join();
}

TEST_CASE("a client that leaves in a loop ends it, and variables stay") {
  const Served served(2);
  const Replica replica(kTask1);
  const auto other = actors::make_session(served.client(), replica.graph);
  must(other->run({}, {}, {"init"}));
  must(other->run({{"x", Tensor::scalar(3.f)}}, {}, {"step"}));
  {
    const Endless endless;
    const auto session = actors::make_session(served.client(), endless.graph);
    std::promise<Status> ended;
    session->run_async({}, {endless.out}, {}, {},
                       [&](auto answer, const actors::RunStats&) {
                         ended.set_value(answer.status());
                       });
    CHECK(served.door->num_clients() == 2);
    CHECK(session->close().ok());
    CHECK(ended.get_future().get().code() == Code::kCancelled);
  }
  await([&] { return served.door->num_clients() == 1; });
  CHECK(value_of(other->run({}, {"get"})) == 6.f);
}

TEST_CASE("a master service that ends fails the runs of its clients") {
  auto served = std::make_unique<Served>(2);
  const Endless endless;
  const auto session = actors::make_session(served->client(), endless.graph);
  std::thread ending([&] {
    while (session->counters().active + session->counters().waiting == 0)
      std::this_thread::yield();
    served->door.reset();
  });
  const Status lost = session->run({}, {endless.out}).status();
  ending.join();
  CHECK(lost.code() == Code::kUnavailable);
  INFO(message(lost));
  CHECK(contains(message(lost), "the master has ended"));
  CHECK(session->run({}, {endless.out}).status().code() == Code::kUnavailable);
}

TEST_CASE("a client compiles again when a worker of its service was lost") {
  ClusterOptions cluster = local_cluster();
  auto worker = must(Worker::start(local_worker(0)));
  cluster.members.push_back({{"worker", 0}, {"localhost", worker->port()}});
  actors::SessionOptions options;
  options.backend = must(Cluster::connect(cluster));
  const auto service = must(MasterService::create({std::move(options), {}}));
  const auto door = door_of(*service);
  const actors::SessionOptions client = client_at(address_of(*door));
  const Replica replica(kTask0);
  const auto session = actors::make_session(client, replica.graph);
  must(session->run({}, {}, {"init"}));
  WorkerOptions again = local_worker(0);
  again.port = worker->port();
  worker.reset();
  const Status lost = session->run({}, {}, {"init"}).status();
  CHECK(lost.code() == Code::kUnavailable);
  CHECK(contains(message(lost), "/job:worker/task:0"));
  worker = must(Worker::start(std::move(again)));
  must(session->reset({""}));
  must(session->run({}, {}, {"init"}));
  CHECK(value_of(session->run({}, {"get"})) == 0.f);
}

TEST_CASE("a service refuses strangers, and a worker refuses its clients") {
  const Served served(1, {.clients = 1});
  CHECK(
      RemoteMaster::connect(served.address("another secret")).status().code() ==
      Code::kUnauthenticated);
  const auto first = must(RemoteMaster::connect(served.address()));
  CHECK(contains(message(RemoteMaster::connect(served.address()).status()),
                 "1 clients are here, the limit"));
  // A master is not a client, and a worker is not a service.
  ClusterOptions master = local_cluster();
  master.members.push_back({{"master", 0}, {"localhost", served.door->port()}});
  CHECK(contains(message(Cluster::connect(master).status()),
                 "both processes are masters"));
  const auto worker = must(Worker::start(local_worker(0)));
  RemoteMasterOptions wrong = served.address();
  wrong.address.port = worker->port();
  CHECK(contains(message(RemoteMaster::connect(wrong).status()),
                 "/job:worker/task:0 is not a master service"));
}

}  // namespace tagflow::net
