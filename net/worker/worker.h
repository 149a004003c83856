// Worker: a process that runs parts of the steps of a master.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "devices/print_sink.h"
#include "graph/op_policy.h"
#include "graph/status.h"
#include "net/transfer/pairing.h"
#include "net/wire/event.h"
#include "net/wire/messages.h"
#include "net/worker/figures.h"

namespace tagflow::net {

class Tls;
struct IoThreads;  // net/transfer/channel.h

struct WorkerOptions {
  Task task;            // of the cluster
  std::string cluster;  // its name
  std::string secret;   // what its processes share; not empty
  // That of the task, by load_tls() in net/config/tls_files.h; null: without
  // TLS.
  std::shared_ptr<Tls> tls;
  std::string host = "localhost";  // on which it listens
  uint16_t port = 0;               // 0: one that is free
  // Whether it may listen without TLS at other addresses than those of
  // loopback, where whoever is on the path can read and change what is sent.
  bool beyond_loopback = false;
  // Whether processes of this machine may connect to an address of loopback by
  // a Unix socket, which is faster than TCP. What they say is the same.
  bool has_local_door = true;
  // Of any member of the cluster that is to be joined. An empty host: this
  // worker is the directory of its cluster, which others join.
  Address join;
  std::string devices;  // as SessionOptions::devices
  int workers = 0;      // threads of its engine; 0: one per core
  // What the graphs of masters may do here.
  graph::OpPolicy policy = without_files();
  // The folder in and below which a master may have shards of checkpoints
  // written and read; no other op may use it. Empty: where `policy` lets ops
  // write and read.
  std::string checkpoints;
  // Receives what they print. Empty: the streams of the process.
  devices::PrintSink print_sink;
  // Receives what happens: that a master comes, why it was lost, which steps
  // have failed here first, what is odd about functions of datasets. Empty:
  // warnings go to stderr.
  OnEvent on_event;
  // Called when the worker has become a member of the cluster that it joins,
  // and again after each loss of its master or of the directory. May be empty.
  // Must be thread-safe.
  std::function<void()> on_joined;
  // Receives why the cluster will never take this worker, such as another
  // build. Called once; may be empty. Must be thread-safe.
  std::function<void(const Status&)> on_refused;
  // Called when a process of the cluster asks this worker to leave, as by
  // drain_worker(): the owner then calls Worker::drain(), and destroys the
  // worker. Empty: such processes are refused. Must be thread-safe.
  std::function<void()> on_asked_to_leave;

  // All ops but those that use files.
  static graph::OpPolicy without_files();
};

// Serves one master at a time. When it loses it, it ends all steps, drops what
// it had for it, also variables, and waits for another one as a new
// incarnation, on the same port.
//
// It is a member of its cluster while its directory knows it: it joins in the
// background, tries again for as long as it has to, and joins anew when it has
// lost the directory. This does not touch what it does for its master.
// Thread-safe.
class Worker {
 public:
  // InvalidArgument for a task or devices that cannot be, or an empty secret;
  // Unavailable if it cannot listen, PermissionDenied if it may not.
  static Result<std::unique_ptr<Worker>> start(WorkerOptions options);
  // Ends all steps, which fail at their master with Unavailable, and waits for
  // the kernels that run.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  uint16_t port() const;
  // What it has done and has, for whoever watches it. Waits for no step.
  WorkerFigures figures() const;
  // Those of its links, for whoever looks whether they answer: see ThreadProbe.
  // They live as long as the worker.
  const IoThreads& threads() const;

  // Leaves the cluster without a loss for anybody. From now on the worker takes
  // no master, its own one starts no more steps here, and those that run go on.
  // Returns whether they are over, which it waits for, but not for longer than
  // `most`. The owner destroys the worker next: that ends what is left. Other
  // processes are told that it has left. To be called once.
  bool drain(std::chrono::milliseconds most);

 private:
  class Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tagflow::net
