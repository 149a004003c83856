// What the control plane ends only after some time.
#include <doctest/doctest.h>

#include <future>

#include "net/control/control_system.h"
#include "net/transfer/identity.h"
#include "tests/net/control/basp_bytes.h"
#include "tests/net/control/cluster_of.h"
#include "tests/net/master/front.h"

namespace tagflow::net {

TEST_CASE("a worker ends if another process of its task lives") {
  const Joined directory = start_worker(joining(0));
  const Joined first = start_worker(joining(1, directory.address()));
  wait_for_members(directory.address(), 2);
  for (const uint32_t task : {0, 1}) {
    std::promise<Status> refused;
    WorkerOptions options = joining(task, directory.address());
    options.on_refused = [&](const Status& status) {
      refused.set_value(status);
    };
    const Joined second = start_worker(options);
    auto answer = refused.get_future();
    REQUIRE(answer.wait_for(kNever) == std::future_status::ready);
    CHECK(mentions(answer.get(), task == 0 ? "task:0 is the directory itself"
                                           : "task:1 is a member already"));
  }
  CHECK(wait_for_members(directory.address(), 2)[1].port ==
        first.worker->port());
}

TEST_CASE("a control connection ends if its peer says nothing") {
  const Joined directory = start_worker(joining(0));
  const auto thread = start_thread();
  auto identity =
      make_identity(Role::kWorker, {"worker", 9}, kTestCluster, kTestSecret);
  REQUIRE(identity.ok());
  // Without a handshake, with a part of it, with all of it.
  std::vector<Socket> sockets;
  for (const uint32_t process : {1, 2, 3}) {
    const basp_bytes::Node node{process};
    identity->node = ControlSystem::hash_of(node.id());
    auto connection =
        connect(*thread, directory.address(), *identity, Purpose::kControl);
    INFO(connection.status().to_string());
    REQUIRE(connection.ok());
    const int socket = connection->socket.descriptor();
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    const std::string bytes = basp_bytes::client_handshake(node).bytes();
    REQUIRE(write_all(connection->socket,
                      bytes.substr(0, bytes.size() * (process - 1) / 2)));
    sockets.push_back(std::move(connection->socket));
  }
  for (const Socket& socket : sockets) read_to_end(socket);
  CHECK(directory.warnings->mention("ends: it says nothing"));
  wait_for_members(directory.address(), 1);
}

TEST_CASE("a worker has left if it ends before it answers who asked it to") {
  Front front(
      *make_identity(Role::kWorker, {"worker", 0}, kTestCluster, kTestSecret));
  WorkerOptions options = joining(0);
  options.on_asked_to_leave = [&] { front.cut(); };
  const Joined worker = start_worker(options);
  front.pass_to(worker.worker->port());
  const Status status =
      drain_worker(access_by({"localhost", front.port()}), {"worker", 0});
  CHECK_MESSAGE(status.ok(), status.to_string());
}

}  // namespace tagflow::net
