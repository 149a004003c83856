// What a master learns of a cluster, and what status says about a running one.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "net/control/client.h"
#include "net/link/silence.h"
#include "net/master/cluster.h"
#include "tests/actors/process_cases.h"
#include "tests/net/control/cluster_of.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::must;

// A variable of task 1 that task 0 reads.
struct Shared : actors::Program {
  Shared() {
    const Scope there = s.with_device("/job:worker/task:1");
    v = ops::variable(there.named("v"), DataType::kFloat, PartialShape({1024}));
    // What a kernel makes is counted; a constant is not.
    const std::vector<float> threes(1024, 3.f);
    ops::assign(
        there.named("init"), v,
        ops::add(there, ops::constant(there, Tensor::of<float>({1024}, threes)),
                 4.f));
    ops::identity(s.with_device("/job:worker/task:0").named("read"),
                  ops::read(there, v));
    must(s.status());
  }
  ops::Variable v;
};

std::shared_ptr<Cluster> connect_to(const Address& any, size_t count) {
  ClusterOptions options;
  options.name = "test";
  options.secret = "a secret of this test";
  for (const CatalogueEntry& member : wait_for_members(any, count))
    options.members.push_back({member.task, {member.host, member.port}});
  return must(Cluster::connect(options));
}

}  // namespace

TEST_CASE("a master finds its workers by the directory, which may get lost") {
  Joined directory = start_worker(joining(0));
  const Address address = directory.address();
  const Joined first = start_worker(joining(1, address));
  wait_for_members(address, 2);
  // The directory is not a part of the steps.
  ClusterOptions options;
  options.name = "test";
  options.secret = "a secret of this test";
  options.members.push_back({{"worker", 1}, first.address()});
  actors::SessionOptions session_options;
  session_options.backend = must(Cluster::connect(options));
  actors::Program p;
  const ops::Variable v =
      ops::variable(p.s.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(p.s.named("init"), v, 7);
  ops::identity(p.s.named("read"), ops::read(p.s, v));
  const auto session = actors::make_session(session_options, p.graph);
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
  directory.worker.reset();
  wait_until([&] { return first.warnings->mention("the directory is lost"); });
  WorkerOptions again = joining(0);
  again.port = address.port;
  directory = start_worker(again);
  wait_for_members(address, 2);
  CHECK(must(actors::must_run(*session, {}, {"read"})[0].item<int32_t>()) == 7);
}

TEST_CASE("status says what each member has to do") {
  const Joined directory = start_worker(joining(0));
  const Joined first = start_worker(joining(1, directory.address()));
  const Joined second = start_worker(joining(2, directory.address()));
  const auto cluster = connect_to(directory.address(), 3);
  const Shared p;
  actors::SessionOptions options;
  options.backend = cluster;
  options.passes = PassSet::none();
  const auto session = actors::make_session(options, p.graph);
  must(session->run({}, {}, {"init"}, actors::within_a_minute()));
  CHECK(actors::must_run(*session, {}, {"read"})[0].flat<float>()[1023] == 7.f);
  for (const Joined* asked : {&directory, &second}) {
    std::vector<MemberStatus> all;
    // A worker may count a step a little later than its master, and a link
    // measures its round trip when it has nothing else to do.
    wait_until([&] {
      // Many systems of CAF that one process makes in a row may have the same
      // node, and then one of them is turned away.
      std::this_thread::sleep_for(std::chrono::milliseconds(50 * kSlowness));
      auto said = status_of(access_by(asked->address()));
      if (!said.ok()) return false;
      all = *std::move(said);
      return all.size() == 3 && all[0].load.steps_finished == 1 &&
             all[1].load.steps_finished == 2 && all[0].load.links.size() == 2 &&
             all[0].load.links[1].round_trip_ns > 0;
    });
    for (const MemberStatus& each : all) {
      INFO(each.status.to_string());
      CHECK(each.status.ok());
      CHECK(each.load.incarnation == each.member.incarnation);
      CHECK(each.load.uptime_ns > 0);
      CHECK(each.load.memory_bytes > (1 << 20));
      CHECK(each.load.has_master);
      CHECK(each.load.steps_running == 0);
      REQUIRE_FALSE(each.load.links.empty());
      CHECK(each.load.links[0].peer == "the master");
    }
    CHECK(all[0].load.executables == 1);
    CHECK(all[1].load.executables == 2);
    CHECK(all[2].load.executables == 0);
    CHECK(all[2].load.steps_finished == 0);
    CHECK(all[1].load.tensor_bytes >= 1024 * sizeof(float));
    REQUIRE(all[0].load.links.size() == 2);
    REQUIRE(all[1].load.links.size() == 2);
    CHECK(all[2].load.links.size() == 1);
    const Load::Link& there = all[0].load.links[1];
    CHECK(there.peer == "/job:worker/task:1");
    CHECK(all[1].load.links[1].peer == "/job:worker/task:0");
    CHECK(there.bytes_in > 0);
    CHECK(there.bytes_out > 0);
  }
}

TEST_CASE("a worker that has lost its master has another incarnation") {
  const Joined directory = start_worker(joining(0));
  const Joined first = start_worker(joining(1, directory.address()));
  const auto before = wait_for_members(directory.address(), 2);
  connect_to(directory.address(), 2).reset();
  wait_until([&] {
    const auto after = wait_for_members(directory.address(), 2);
    return after[0].incarnation != before[0].incarnation &&
           after[1].incarnation != before[1].incarnation;
  });
  CHECK_FALSE(directory.warnings->mention("is lost: its connection"));
}

}  // namespace tagflow::net
