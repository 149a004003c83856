// FunctionHost: how kernels run functions of the graph's library.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "graph/attr.h"
#include "graph/function.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Calls that are ended together. Thread-safe.
class CallGroup {
 public:
  virtual ~CallGroup() = default;
  // Ends the open calls, and those that begin later. Their answers may come on
  // this thread.
  virtual void cancel() = 0;
};

// A function of a library with its attributes bound, compiled. Thread-safe.
class HostedFunction {
 public:
  using Done = std::function<void(Result<std::vector<Tensor>>)>;

  virtual ~HostedFunction() = default;
  virtual const std::vector<DataType>& arg_types() const = 0;
  virtual const std::vector<DataType>& result_types() const = 0;
  // Starts a run with these arguments, and returns. `done` is called once, on
  // any thread, perhaps before this returns; it must not block. `group` is one
  // of the host. Errors name the node in the function.
  virtual void call(std::vector<Tensor> args, const CallGroup& group,
                    Done done) const = 0;
};

// The functions of a session, or of what a master has registered at a worker,
// and the threads that run them. If it outlives its session, all calls fail.
// Thread-safe.
class FunctionHost {
 public:
  virtual ~FunctionHost() = default;
  using Library = std::shared_ptr<const graph::FunctionLibrary>;
  // Functions that other hosts of the same state may lack: a dataset brings
  // them along. Null if there are none.
  virtual Library own_functions() const = 0;
  // The function of `library`, or, if that is null, of the host. Compiles it
  // when it is asked for the first time. NotFound if there is none.
  virtual Result<std::shared_ptr<const HostedFunction>> find(
      const FunctionRef& function, const Library& library) = 0;
  virtual std::shared_ptr<CallGroup> make_group() = 0;
  // Calls `work` soon, on a worker. It must not throw.
  virtual void post(std::function<void()> work) = 0;
  // How many calls are worth to run at once: the number of workers.
  virtual int parallelism() const = 0;
};

}  // namespace tagflow::devices
