// Membership, catalogue and status of workers of this process.
#include "net/control/control.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "net/link/listener.h"
#include "net/transfer/identity.h"
#include "tests/net/control/cluster_of.h"

namespace tagflow::net {
namespace {

// The other end of a control connection that has ended its hello.
Result<Connection> connect_control(const Address& address, uint64_t node) {
  const auto thread = start_thread();
  auto identity = make_identity(Role::kWorker, {"worker", 9}, "test",
                                "a secret of this test");
  REQUIRE(identity.ok());
  identity->node = node;
  return connect(*thread, address, *identity, Purpose::kControl);
}

void wait_for_bytes(const Socket& socket) {
  const int flags = ::fcntl(socket.descriptor(), F_GETFL);
  ::fcntl(socket.descriptor(), F_SETFL, flags & ~O_NONBLOCK);
}

}  // namespace

TEST_CASE("workers that join by any member are in the catalogue of each") {
  const Joined directory = start_worker(joining(0));
  const Joined first = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  const Joined second = start_worker(joining(10, first.address()));
  const Joined third = start_worker(joining(2, second.address()));
  const Joined* const all[] = {&directory, &first, &third, &second};
  for (const Joined* asked : all) {
    const auto members = wait_for_members(asked->address(), 4);
    const uint32_t tasks[] = {0, 1, 2, 10};
    for (size_t i = 0; i < 4; ++i) {
      CHECK(members[i].task == Task{"worker", tasks[i]});
      CHECK(members[i].host == "localhost");
      CHECK(members[i].port == all[i]->worker->port());
      CHECK(members[i].incarnation != 0);
      REQUIRE(members[i].devices.size() == 1);
      CHECK(
          members[i].devices[0] ==
          fmt::format("/job:worker/replica:0/task:{}/device:CPU:0", tasks[i]));
    }
  }
}

TEST_CASE("a worker of all addresses is reached by that of its connection") {
  const Joined directory = start_worker(joining(0));
  WorkerOptions everywhere =
      joining(1, {"127.0.0.1", directory.worker->port()});
  everywhere.host = "0.0.0.0";
  everywhere.beyond_loopback = true;
  const Joined worker = start_worker(everywhere);
  CHECK(wait_for_members(directory.address(), 2)[1].host == "127.0.0.1");
}

TEST_CASE("a worker that ends is no member any more") {
  const Joined directory = start_worker(joining(0));
  {
    const Joined worker = start_worker(joining(1, directory.address()));
    wait_for_members(directory.address(), 2);
  }
  wait_for_members(directory.address(), 1);
  CHECK(directory.warnings->mention(
      "[members] /job:worker/task:1 is lost: its connection has ended"));
}

TEST_CASE("a worker may end on another thread than the one that started it") {
  Joined directory = start_worker(joining(0));
  Joined worker = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  std::thread([&] {
    worker.worker.reset();
    directory.worker.reset();
  }).join();
}

TEST_CASE("a second process of a task waits until the first is lost") {
  const Joined directory = start_worker(joining(0));
  Joined first = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  const Joined second = start_worker(joining(1, directory.address()));
  wait_until([&] {
    return second.warnings->mention("/job:worker/task:1 is a member already");
  });
  CHECK(wait_for_members(directory.address(), 2)[1].port ==
        first.worker->port());
  first.worker.reset();
  wait_until([&] {
    return wait_for_members(directory.address(), 2)[1].port ==
           second.worker->port();
  });
}

TEST_CASE("the task of the directory is taken") {
  const Joined directory = start_worker(joining(0));
  const Joined second = start_worker(joining(0, directory.address()));
  wait_until([&] {
    return second.warnings->mention(
        "/job:worker/task:0 is the directory itself");
  });
}

TEST_CASE("workers find a directory that starts after them, or anew") {
  Joined directory = start_worker(joining(0));
  const uint16_t port = directory.worker->port();
  directory.worker.reset();
  const Joined first = start_worker(joining(1, {"localhost", port}));
  const Joined second = start_worker(joining(2, first.address()));
  wait_until([&] { return first.warnings->mention("Connection refused"); });
  WorkerOptions options = joining(0);
  options.port = port;
  for (int round = 0; round < 2; ++round) {
    directory = start_worker(options);
    wait_for_members({"localhost", port}, 3);
    directory.worker.reset();
    wait_until(
        [&] { return second.warnings->mention("the directory is lost"); });
  }
}

TEST_CASE("a worker that does not fit is told so, and asks no more") {
  const Joined directory = start_worker(joining(0));
  std::promise<Status> refused;
  WorkerOptions options = joining(1, directory.address());
  SUBCASE("cluster") { options.cluster = "another"; }
  SUBCASE("secret") { options.secret = "another"; }
  const bool is_secret = options.secret == "another";
  options.on_refused = [&](const Status& status) { refused.set_value(status); };
  const Joined worker = start_worker(options);
  auto answer = refused.get_future();
  REQUIRE(answer.wait_for(kNever) == std::future_status::ready);
  const Status status = answer.get();
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(mentions(status, is_secret ? "as it does if the secrets differ"
                                   : "is of another cluster"));
}

TEST_CASE("who asks a cluster must have its secret and its name") {
  const Joined directory = start_worker(joining(0));
  ClusterAccess access = access_by(directory.address());
  access.secret = "another";
  CHECK(members_of(access).status().code() == Code::kUnauthenticated);
  access.secret = "";
  CHECK(members_of(access).status().code() == Code::kInvalidArgument);
  access = access_by(directory.address());
  access.name = "another";
  const Status status = members_of(access).status();
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(mentions(status, "is of another cluster"));
  access = access_by({"localhost", 1});
  CHECK(status_of(access).status().code() == Code::kUnavailable);
}

TEST_CASE("who asks a cluster with patience waits for a worker to ask") {
  Address address;
  {
    const Joined gone = start_worker(joining(0));
    address = gone.address();
  }
  auto members = std::async(std::launch::async, [&] {
    return members_of(access_by(address), kNever);
  });
  // By now it has tried, too.
  REQUIRE(members_of(access_by(address)).status().code() == Code::kUnavailable);
  WorkerOptions options = joining(0);
  options.port = address.port;
  const Joined directory = start_worker(options);
  const auto found = members.get();
  REQUIRE(found.ok());
  CHECK(found->size() == 1);
}

TEST_CASE("a control connection needs a CAF node of its own") {
  const Joined directory = start_worker(joining(0));
  const Status none = connect_control(directory.address(), 0).status();
  CHECK(mentions(none, "the connector has no CAF node"));
  const auto first = connect_control(directory.address(), 7);
  REQUIRE(first.ok());
  wait_for_bytes(first->socket);
  // CAF's greeting.
  CHECK(read_exactly(first->socket, 1).size() == 1);
  const auto second = connect_control(directory.address(), 7);
  REQUIRE(second.ok());
  wait_for_bytes(second->socket);
  CHECK(read_exactly(second->socket, 1).empty());
  CHECK(directory.warnings->mention("have the same CAF node"));
  wait_for_members(directory.address(), 1);
}

TEST_CASE("as many processes as the limit have control connections at a time") {
  const auto thread = start_thread();
  auto identity =
      make_identity(Role::kWorker, {"worker", 0}, kTestCluster, kTestSecret);
  REQUIRE(identity.ok());
  const auto control =
      Control::start(*thread, {.identity = *identity,
                               .load = [] { return Load(); },
                               .on_warning = [](const std::string&) {},
                               .most_connections = 2});
  REQUIRE(control.ok());
  identity->node = (*control)->node();
  const auto listener = Listener::start(
      *thread, {}, *identity,
      [&](const Greeting& peer) { return (*control)->admit(peer); },
      [&](Connection connection) { (*control)->take(std::move(connection)); });
  REQUIRE(listener.ok());
  const Address address{"localhost", (*listener)->port()};
  auto first = connect_control(address, 7);
  const auto second = connect_control(address, 8);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  const Status third = connect_control(address, 9).status();
  // It may try again.
  CHECK(third.code() == Code::kAborted);
  CHECK(mentions(third, "2 processes are connected"));
  first->socket = Socket();
  wait_until([&] { return connect_control(address, 9).ok(); });
}

TEST_CASE("garbage on a proven control connection ends it, and no more") {
  const Joined directory = start_worker(joining(0));
  const Joined worker = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  uint64_t node = 7;
  for (const char byte : {'\0', '\x01', '\x7f', '\xff'})
    for (const Joined* victim : {&directory, &worker}) {
      const auto connection = connect_control(victim->address(), node++);
      REQUIRE(connection.ok());
      wait_for_bytes(connection->socket);
      // A header of BASP that names a payload of any length, and the payload.
      write_all(connection->socket, std::string(size_t{1} << 16, byte));
      ::shutdown(connection->socket.descriptor(), SHUT_WR);
      read_to_end(connection->socket);
    }
  wait_for_members(worker.address(), 2);
}

}  // namespace tagflow::net
