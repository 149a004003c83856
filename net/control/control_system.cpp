#include "net/control/control_system.h"

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
#include "net/control/allowance.h"
#include "net/control/basp_filter.h"
#include "net/link/crypto.h"
#include "net/link/relay.h"

namespace tagflow::net {
namespace {

// Bytes of answers that a peer has not read.
constexpr size_t kMostUnread = size_t{16} << 20;
// Descriptors are smaller, as are CAF's own handles.
constexpr int64_t kFirstHandle = int64_t{1} << 32;

}  // namespace

// The connections that CAF has. Scribes outlive the system's owner for a while.
class ControlSystem::Table : public std::enable_shared_from_this<Table> {
 public:
  explicit Table(OnWarning on_warning) : on_warning_(std::move(on_warning)) {}

  ConnectionId add(Scribe* scribe, Peer peer) {
    const std::lock_guard lock(mutex_);
    const ConnectionId id{next_++};
    peer.id = id;
    connections_.emplace(id, Known{scribe, std::move(peer)});
    return id;
  }
  void remove(ConnectionId id) {
    const std::lock_guard lock(mutex_);
    connections_.erase(id);
  }
  std::optional<Peer> find(uint64_t node) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, connection] : connections_)
      if (connection.peer.greeting.node == node) return connection.peer;
    return std::nullopt;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return connections_.size();
  }
  void hear(ConnectionId id) {
    const std::lock_guard lock(mutex_);
    if (const auto found = connections_.find(id); found != connections_.end())
      found->second.is_heard = true;
  }
  void cut(ConnectionId id);
  void watch(IoThread& thread, ConnectionId id);
  void warn(const Peer& peer, std::string_view why) {
    const std::lock_guard lock(warning_);
    if (on_warning_)
      on_warning_(
          fmt::format("[net|control] the connection of {} at {} ends: {}",
                      peer.greeting.task.to_string(), peer.host, why));
  }
  // No warning is given any more when this returns.
  void close() {
    const std::lock_guard lock(warning_);
    on_warning_ = {};
  }

 private:
  struct Known {
    Scribe* scribe;
    Peer peer;
    bool is_heard = false;  // since the last look
  };
  // Whether the connection goes on; it is cut if its peer was silent.
  bool look(ConnectionId id);

  std::mutex warning_;  // guards the handler
  OnWarning on_warning_;
  mutable std::mutex mutex_;  // guards the below
  int64_t next_ = kFirstHandle;
  std::map<ConnectionId, Known> connections_;
};

class ControlSystem::Scribe final : public caf::io::network::scribe_impl {
 public:
  using Multiplexer = caf::io::network::default_multiplexer;

  Scribe(caf::actor_system& system, std::shared_ptr<Table> table, Socket socket,
         Peer peer, BaspFilter::Options options)
      : scribe_impl(dynamic_cast<Multiplexer&>(system.middleman().backend()),
                    socket.release()),
        table_(std::move(table)),
        peer_(peer),
        id_(table_->add(this, std::move(peer))),
        filter_(std::move(options)) {
    hdl_ = caf::io::connection_handle::from_int(int64_t(id_));
    msg().handle = hdl_;
  }
  ~Scribe() override { table_->remove(id_); }

  // BASP wants a header and a payload by turns, and so does the filter.
  void configure_read(caf::io::receive_policy::config) override {
    if (!launched_) read(BaspFilter::kHeader);
  }
  // Of what CAF is given.
  std::vector<char>& rd_buf() override { return given_; }

  bool consume(caf::execution_unit* unit, const void* bytes,
               size_t size) override;

  ConnectionId id() const { return id_; }
  // REQUIRES: the table's mutex is held, or this is CAF's thread.
  void cut() { ::shutdown(stream_.fd(), SHUT_RDWR); }

 private:
  void read(size_t size) {
    scribe_impl::configure_read(caf::io::receive_policy::exactly(size));
  }
  bool give(caf::execution_unit* unit, std::string_view bytes) {
    given_.assign(bytes.begin(), bytes.end());
    return scribe::consume(unit, given_.data(), given_.size());
  }
  // Whether the bytes, a header or the payload behind it, are sound.
  Result<bool> check(std::string_view bytes);

  const std::shared_ptr<Table> table_;
  const Peer peer_;
  const ConnectionId id_;
  BaspFilter filter_;
  Allowance allowance_{std::chrono::steady_clock::now()};
  std::string header_;  // whose payload is read now; empty: none
  std::vector<char> given_;
  bool has_ended_ = false;
};

bool ControlSystem::Scribe::consume(caf::execution_unit* unit,
                                    const void* bytes, size_t size) {
  // What had arrived before the connection was cut.
  if (has_ended_) return true;
  const std::string_view part(static_cast<const char*>(bytes), size);
  const bool is_header = header_.empty();
  const auto goes_on = check(part);
  if (!goes_on.ok()) {
    has_ended_ = true;
    table_->warn(peer_, goes_on.status().message());
    cut();
    return true;
  }
  if (is_header) return true;
  read(BaspFilter::kHeader);
  const std::string header = std::exchange(header_, {});
  return !*goes_on || (give(unit, header) && give(unit, part));
}

Result<bool> ControlSystem::Scribe::check(std::string_view bytes) {
  if (header_.empty()) {
    TAGFLOW_ASSIGN(const size_t payload, BaspFilter::payload_size(bytes));
    header_ = bytes;
    read(payload);
    return false;
  }
  if (wr_buf().size() > kMostUnread)
    return error(Code::kResourceExhausted, "it reads no answers");
  if (!allowance_.take(bytes.size(), std::chrono::steady_clock::now()))
    return error(Code::kResourceExhausted, "it says too much at once");
  TAGFLOW_ASSIGN(const bool is_for_caf, filter_.take(header_, bytes));
  table_->hear(id_);
  return is_for_caf;
}

void ControlSystem::Table::cut(ConnectionId id) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(id);
  if (found != connections_.end()) found->second.scribe->cut();
}

void ControlSystem::Table::watch(IoThread& thread, ConnectionId id) {
  thread.post_after(kMostSilent, [self = shared_from_this(), &thread, id] {
    // Without memory for another look, the connection ends.
    const Status watched = guarded("net|control", [&] {
      if (self->look(id)) self->watch(thread, id);
    });
    if (!watched.ok()) self->cut(id);
  });
}

bool ControlSystem::Table::look(ConnectionId id) {
  std::unique_lock lock(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  if (std::exchange(found->second.is_heard, false)) return true;
  const Peer peer = found->second.peer;
  lock.unlock();
  // First, so that whoever sees that it has ended knows why.
  warn(peer, "it says nothing");
  cut(id);
  return false;
}

ControlSystem::Config::Config() {
  // Idle threads wait for a signal; those that steal work look for it.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", size_t{1});
  // BASP reads messages on its own thread: they are short.
  set("middleman.workers", size_t{0});
  load<caf::io::middleman>();
}

ControlSystem::ControlSystem(OnWarning on_warning)
    : table_(std::make_shared<Table>(std::move(on_warning))),
      system_(config_),
      broker_(system_.middleman().named_broker<caf::io::basp_broker>(
          caf::atom("BASP"))),
      node_(hash_of(system_.node())) {}

ControlSystem::~ControlSystem() { table_->close(); }

Result<std::unique_ptr<ControlSystem>> ControlSystem::start(
    OnWarning on_warning) {
  try {
    return std::unique_ptr<ControlSystem>(
        new ControlSystem(std::move(on_warning)));
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

Result<ControlSystem::Adopted> ControlSystem::adopt(IoThread& thread,
                                                    Connection connection,
                                                    Side side,
                                                    caf::actor_id actor) {
  Peer peer{.host = peer_host_of(connection.socket.descriptor())};
  peer.greeting = std::move(connection.peer);
  TAGFLOW_ASSIGN(Socket socket,
                 without_tls(thread, std::move(connection.socket)));
  BaspFilter::Options options{.is_connector = side == Side::kConnector,
                              .node = system_.node(),
                              .peer_node = peer.greeting.node,
                              .actor = actor};
  const auto scribe = caf::make_counted<Scribe>(
      system_, table_, std::move(socket), std::move(peer), std::move(options));
  return Adopted{scribe->id(), scribe};
}

std::optional<ControlSystem::Peer> ControlSystem::find(uint64_t node) const {
  return table_->find(node);
}

void ControlSystem::watch(IoThread& thread, ConnectionId id) {
  table_->watch(thread, id);
}

size_t ControlSystem::num_connections() const { return table_->size(); }

void ControlSystem::cut(ConnectionId id) { table_->cut(id); }

}  // namespace tagflow::net
