// Clients of a master service that know the secret, and keep to no rule.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "net/transfer/channel.h"
#include "net/transfer/identity.h"
#include "net/transfer/reports.h"
#include "tests/net/link/loopback.h"
#include "tests/net/service/door.h"
#include "tests/net/service/service.h"
#include "tests/net/wire/random_frame.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::contains;
using graph::testing::must;

constexpr char kTask0[] = "/job:worker/task:0";

// A client that is nothing but its links.
class BareClient {
 public:
  explicit BareClient(const Served& served)
      : threads_(must(IoThreads::start())),
        pair_(must(connect_pair(*threads_.bulk,
                                {"localhost", served.door->port()},
                                must(make_identity(Role::kClient, {"client", 0},
                                                   kTestCluster, kTestSecret)),
                                0))),
        links_(threads_, std::move(pair_.small), std::move(pair_.bulk),
               "the service") {
    links_.start(
        {.on_frame =
             [this](const Frame& frame) {
               if (frame.kind == FrameKind::kReply)
                 replies.put(must(parse_body<Reply>(frame.body)));
               if (frame.kind == FrameKind::kDone)
                 dones.put(must(parse_body<net::Done>(frame.body)));
               return Status();
             },
         .on_begin = [](const Begin&) -> Result<BulkLink::Destination> {
           return error(Code::kUnimplemented, "no results");
         },
         .on_lost = [this](const Status& why) { losses.put(why); }});
  }

  Channel& links() { return links_; }
  // Asks, and returns what the service says.
  Status ask(const ServiceRequest& request) {
    const auto bytes =
        std::make_shared<const std::string>(must(bytes_of(request)));
    links_.send(BulkLink::Object{
        {links_.next_object(), ObjectKind::kRegister, bytes->size(), {}},
        *bytes,
        bytes});
    return status_of(replies.take().outcome);
  }
  // The outcome of the next run that ends, which is this one.
  Status outcome_of_run(uint64_t step) {
    const net::Done done = dones.take();
    CHECK(done.step == step);
    return status_of(done.outcome);
  }

  FrameInbox<Reply> replies;
  FrameInbox<net::Done> dones;
  FrameInbox<Status> losses;

 private:
  IoThreads threads_;
  Pairing::Pair pair_;
  Channel links_;
};

// y = x + 1, as executable 2 of a client.
struct Sum : actors::Program {
  Sum() {
    const Output x =
        ops::placeholder(s.with_device(kTask0).named("x"), DataType::kFloat);
    ops::add(s.with_device(kTask0).named("y"), x, 1.f);
    must(s.status());
  }
  void prepare(BareClient& client) const {
    must(client.ask(open_request(1)));
    must(client.ask(extend_request(1, graph)));
    must(client.ask(prepare_request(1, 2, {"y"}, {}, {"x"})));
  }
  static Run run(uint64_t step) {
    return {.executable = 2,
            .step = step,
            .feeds = {{0, Tensor::scalar<float>(1)}}};
  }
};

constexpr ObjectId kNeverSent{uint64_t{1} << 40};

}  // namespace

TEST_CASE("runs whose feeds never come have a limit, and others go on") {
  const Served served(1, {.runs = 4});
  const Sum sum;
  BareClient client(served);
  sum.prepare(client);
  for (uint64_t step = 1; step <= 5; ++step)
    must(client.links().send(
        Run{.executable = 2, .step = step, .feeds = {{0, kNeverSent}}}));
  const Status refused = client.outcome_of_run(5);
  CHECK(refused.code() == Code::kResourceExhausted);
  CHECK(contains(std::string(refused.message()),
                 "4 runs of the client wait for their feeds"));
  // Another client has limits of its own.
  BareClient other(served);
  sum.prepare(other);
  must(other.links().send(Sum::run(1)));
  must(other.outcome_of_run(1));
}

TEST_CASE("the feeds of runs that wait for others count") {
  const Served served(1, {.bytes = 100'000});
  const Sum sum;
  BareClient client(served);
  sum.prepare(client);
  const Tensor part = Tensor::make(DataType::kFloat, {1000});
  uint64_t step = 0;
  while (client.dones.size() == 0 && step < 1000)
    must(client.links().send(Run{.executable = 2,
                                 .step = ++step,
                                 .feeds = {{0, part}, {1, kNeverSent}}}));
  const net::Done done = client.dones.take();
  CHECK(done.outcome.code == Code::kResourceExhausted);
  CHECK(contains(done.outcome.message, "100000 is the limit"));
  CHECK(done.step <= 26);
}

TEST_CASE("a run with other feeds than its signature does not wait") {
  const Served served(1);
  const Sum sum;
  BareClient client(served);
  sum.prepare(client);
  Run run = Sum::run(1);
  for (uint32_t i = 1; i < 10'000; ++i)
    run.feeds.push_back({i, Tensor::make(DataType::kFloat, {0})});
  must(client.links().send(run));
  CHECK(contains(std::string(client.outcome_of_run(1).message()),
                 "has 1 feeds, not 10000"));
  must(client.links().send(Sum::run(2)));
  must(client.outcome_of_run(2));
}

TEST_CASE("a Reset of too many containers cannot be sent") {
  Reset reset{.request = 1};
  reset.containers.resize(4096);
  CHECK(frame_of(reset).ok());
  reset.containers.resize(4097);
  CHECK(contains(std::string(frame_of(reset).status().message()),
                 "4097 containers are more than 4096"));
}

TEST_CASE("a service outlives whatever a client sends, and serves others") {
  const Served served(1);
  const Sum sum;
  BareClient client(served);
  sum.prepare(client);
  const IoThreads threads = must(IoThreads::start());
  uint64_t step = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const Identity identity = must(
        make_identity(Role::kClient, {"client", 1}, kTestCluster, kTestSecret));
    RandomPeer peer(
        must(connect_pair(*threads.bulk, {"localhost", served.door->port()},
                          identity, 0, std::chrono::seconds(60))),
        Role::kClient, seed);
    bool goes_on = true;
    for (int i = 0; i < 200 && goes_on; ++i)
      goes_on = i % 4 == 0 ? peer.send_bulk() : peer.send_small();
    must(client.links().send(Sum::run(++step)));
    must(client.outcome_of_run(step));
  }
}

}  // namespace tagflow::net
