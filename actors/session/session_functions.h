// SessionFunctions: runs functions of a library for datasets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "actors/options.h"
#include "devices/files/host_access.h"
#include "devices/function_host.h"
#include "graph/function.h"

namespace tagflow::actors {

class DeviceSet;  // actors/runtime/device_set.h
class Session;

// Note [Functions of datasets]
// A dataset calls functions at any time, also while no step of its session
// runs, and for elements that nobody has asked for yet. So such a call is a
// step of its own. It belongs to an inner session, which is made for the first
// call. That has the library of the outer one, and a signature for each
// function that is called: its arguments are fed, its results fetched. So a
// call has all that a step has - frames and calls, time slices on the workers,
// errors that name the node, cancellation.
//
// The inner session is on the same engine and devices. It has a state of its
// own: functions get the resources of the outer session as captured handles,
// and need no names for them. So no resource refers to its own owner: an
// iterator of the outer state keeps functions, they keep the inner session, and
// that does not keep the outer one. An iterator of the inner state, which a
// function has made, does not keep the functions.
//
// The end of the outer session ends the inner one, which waits for the calls
// that run. An iterator in a state that sessions share can outlive it; then its
// functions fail.
//
// A worker of a cluster has no session. There the parts of a program bring the
// functions that their kernels call (graph/program.h). A dataset brings these
// along, since another program may start it, or start it again. All functions
// end with the service of the worker.

// Calls run on the workers of a device set. Thread-safe.
class WorkerCalls : public devices::FunctionHost {
 public:
  explicit WorkerCalls(std::shared_ptr<DeviceSet> devices)
      : devices_(std::move(devices)) {}
  std::shared_ptr<devices::CallGroup> make_group() override;
  void post(std::function<void()> work) override;
  int parallelism() const override;

 protected:
  const std::shared_ptr<DeviceSet> devices_;
};

// Thread-safe.
class SessionFunctions final
    : public WorkerCalls,
      public std::enable_shared_from_this<SessionFunctions> {
 public:
  // The library of the session, at present. Called by find(), and so while a
  // kernel of the session runs.
  using Present = std::function<graph::FunctionLibrary()>;

  // The options are those of the session, with its seed. `host` is what
  // kernels may reach besides functions. The functions are those of `present`,
  // or, if that is null, of `own`.
  SessionFunctions(SessionOptions options, std::shared_ptr<DeviceSet> devices,
                   std::shared_ptr<const devices::HostAccess> host,
                   Present present, Library own = nullptr);
  ~SessionFunctions() override;

  // What kernels may reach that call these functions. It does not keep them.
  std::shared_ptr<const devices::HostAccess> host() {
    return host_->with_functions(weak_from_this());
  }

  Library own_functions() const override { return own_; }
  Result<std::shared_ptr<const devices::HostedFunction>> find(
      const FunctionRef& function, const Library& library) override;

  // Cancels all calls, rejects new ones, and drops what functions have left in
  // their state. Waits for the calls that run, as Session::close() does, with
  // its errors.
  Status close(std::optional<std::chrono::nanoseconds> deadline);

 private:
  class Hosted;
  class Inner;
  // REQUIRES: mutex_ is held.
  Result<std::shared_ptr<const Hosted>> make(const FunctionRef& function,
                                             const Library& library);
  Status open();

  const std::shared_ptr<const devices::HostAccess> host_;
  const SessionOptions options_;
  const Library own_;  // null: those of `present_`
  std::mutex mutex_;   // guards the below
  Present present_;
  // Null: not made yet.
  std::shared_ptr<Inner> inner_host_;
  std::shared_ptr<Session> inner_;
  bool is_closed_ = false;
  size_t num_made_ = 0;
  std::multimap<std::string, std::shared_ptr<const Hosted>> made_;  // by name
};

}  // namespace tagflow::actors
