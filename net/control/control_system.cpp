#include "net/control/control_system.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/scribe_impl.hpp>
#include <cstring>
#include <map>
#include <mutex>

#include "graph/fault.h"
#include "net/link/crypto.h"

namespace tagflow::net {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 20;  // bytes
// Descriptors are smaller, as are CAF's own handles.
constexpr int64_t kFirstHandle = int64_t{1} << 32;

// Empty if the system does not say.
std::string host_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* at = reinterpret_cast<sockaddr*>(&address);
  char host[NI_MAXHOST] = "";
  if (::getpeername(socket.descriptor(), at, &size) != 0 ||
      ::getnameinfo(at, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) !=
          0)
    return {};
  return host;
}

}  // namespace

// The connections that CAF has. Scribes outlive the system's owner for a while.
class ControlSystem::Table {
 public:
  ConnectionId add(Scribe* scribe, Peer peer) {
    const std::lock_guard lock(mutex_);
    const ConnectionId id{next_++};
    peer.id = id;
    connections_.emplace(id, std::pair(scribe, std::move(peer)));
    return id;
  }
  void remove(ConnectionId id) {
    const std::lock_guard lock(mutex_);
    connections_.erase(id);
  }
  std::optional<Peer> find(uint64_t node) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, connection] : connections_)
      if (connection.second.greeting.node == node) return connection.second;
    return std::nullopt;
  }
  void cut(ConnectionId id);

 private:
  mutable std::mutex mutex_;  // guards the below
  int64_t next_ = kFirstHandle;
  std::map<ConnectionId, std::pair<Scribe*, Peer>> connections_;
};

class ControlSystem::Scribe final : public caf::io::network::scribe_impl {
 public:
  using Multiplexer = caf::io::network::default_multiplexer;

  Scribe(caf::actor_system& system, std::shared_ptr<Table> table, Socket socket,
         Peer peer)
      : scribe_impl(dynamic_cast<Multiplexer&>(system.middleman().backend()),
                    socket.release()),
        table_(std::move(table)),
        id_(table_->add(this, std::move(peer))) {
    hdl_ = caf::io::connection_handle::from_int(int64_t(id_));
    msg().handle = hdl_;
  }
  ~Scribe() override { table_->remove(id_); }

  void configure_read(caf::io::receive_policy::config policy) override {
    policy.second = std::min(policy.second, kMostAtOnce);
    scribe_impl::configure_read(policy);
  }

  ConnectionId id() const { return id_; }
  // REQUIRES: the table's mutex is held.
  void cut() { ::shutdown(stream_.fd(), SHUT_RDWR); }

 private:
  const std::shared_ptr<Table> table_;
  const ConnectionId id_;
};

void ControlSystem::Table::cut(ConnectionId id) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(id);
  if (found != connections_.end()) found->second.first->cut();
}

ControlSystem::Config::Config() {
  // Idle threads wait for a signal; those that steal work look for it.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", size_t{1});
  // BASP reads messages on its own thread: they are short.
  set("middleman.workers", size_t{0});
  load<caf::io::middleman>();
}

ControlSystem::ControlSystem()
    : table_(std::make_shared<Table>()),
      system_(config_),
      broker_(system_.middleman().named_broker<caf::io::basp_broker>(
          caf::atom("BASP"))),
      node_(hash_of(system_.node())) {}

ControlSystem::~ControlSystem() = default;

Result<std::unique_ptr<ControlSystem>> ControlSystem::start() {
  try {
    return std::unique_ptr<ControlSystem>(new ControlSystem);
  } catch (const std::system_error& failure) {
    return error(Code::kResourceExhausted,
                 "[net|control] the system gives no threads: {}",
                 failure.what());
  } catch (...) {
    return current_fault("net|control");
  }
}

uint64_t ControlSystem::hash_of(const caf::node_id& node) {
  uint64_t hash = 0;
  if (const auto digest = sha256(caf::to_string(node)); digest.ok())
    std::memcpy(&hash, digest->data(), sizeof(hash));
  return std::max<uint64_t>(hash, 1);
}

std::pair<ControlSystem::ConnectionId, caf::io::scribe_ptr>
ControlSystem::adopt(Connection connection) {
  Peer peer{.host = host_of(connection.socket)};
  peer.greeting = std::move(connection.peer);
  const auto scribe = caf::make_counted<Scribe>(
      system_, table_, std::move(connection.socket), std::move(peer));
  return {scribe->id(), scribe};
}

std::optional<ControlSystem::Peer> ControlSystem::find(uint64_t node) const {
  return table_->find(node);
}

void ControlSystem::cut(ConnectionId id) { table_->cut(id); }

}  // namespace tagflow::net
