// Control: a worker's part in the control plane of its cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "graph/status.h"
#include "net/link/connection.h"
#include "net/link/hello.h"
#include "net/link/io_thread.h"
#include "net/transfer/pairing.h"
#include "net/wire/control.h"

namespace tagflow::net {

struct ControlOptions {
  // At a time; a cluster has one for each of its members.
  static constexpr size_t kMostConnections = 4096;

  Identity identity;  // its incarnation is not used
  // Of any member of the cluster that is to be joined. An empty host: this
  // process is the directory of its cluster.
  Address join;
  // All on the thread of the control plane, until the end of the Control.
  std::function<Load()> load;
  std::function<void(const std::string&)> on_warning;
  // The cluster that is to be joined knows what was announced. May be empty.
  std::function<void()> on_joined;
  // The cluster will never take this process; called once.
  std::function<void(const Status&)> on_refused;
  // A process of the cluster asks this one to leave. Empty: it is refused.
  std::function<void()> on_asked_to_leave;
  size_t most_connections = kMostConnections;
};

// Life: started; announced, again with each incarnation of the worker; gone,
// which ends its membership. Thread-safe.
class Control {
 public:
  // The thread, which outlives it, connects. Errors of ControlSystem::start().
  static Result<std::unique_ptr<Control>> start(IoThread& thread,
                                                ControlOptions options);
  // Its handlers are not called any more when this returns. REQUIRES: no thread
  // is in admit() or take(), or will be.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // For the greetings of this process.
  uint64_t node() const;
  // Whether a connection of purpose kControl is welcome.
  Status admit(const Greeting& peer) const;
  void take(Connection connection);
  // What the catalogue of the cluster has of this worker.
  void announce(const CatalogueEntry& entry);
  // Says in the cluster that the end of this process is no loss.
  void leave();

 private:
  class Impl;
  explicit Control(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tagflow::net
