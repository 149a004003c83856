#include "actors/session/session_functions.h"

#include <utility>
#include <vector>

#include "actors/runtime/device_set.h"
#include "actors/runtime/job.h"
#include "actors/session/backend.h"
#include "actors/session/session.h"
#include "actors/shared_state.h"
#include "graph/fault.h"
#include "graph/functions/instance.h"

namespace tagflow::actors {
namespace {

// The inner session's options, from those of the outer one.
SessionOptions inner_options(SessionOptions options,
                             const std::shared_ptr<DeviceSet>& devices) {
  options.engine = devices->shared_engine();
  options.hand_off = HandOff::kDirect;  // that of the engine
  options.devices.clear();
  options.workers = 0;
  options.pin_workers = false;
  options.backend = nullptr;
  options.state = nullptr;
  options.scatter = std::nullopt;
  options.lossy.clear();
  options.through_wire = false;
  // The run that waits for an element has the time-out.
  options.timeout = std::chrono::nanoseconds(0);
  // Nodes that are added here.
  if (options.policy.allowed)
    for (const char* op : {"Placeholder", "PartitionedCall"})
      options.policy.allowed->insert(op);
  return options;
}

Status closed_functions() {
  return error(Code::kFailedPrecondition,
               "[session] the session that has the functions of the dataset is "
               "closed");
}

class Group final : public devices::CallGroup {
 public:
  void cancel() override { token_.cancel(); }
  const CancelToken& token() const { return token_; }

 private:
  CancelToken token_;
};

// A function for a dataset of the inner session. A dataset that kept it would
// keep its own session.
class WeakFunction final : public devices::HostedFunction {
 public:
  explicit WeakFunction(
      const std::shared_ptr<const devices::HostedFunction>& function)
      : function_(function),
        args_(function->arg_types()),
        results_(function->result_types()) {}

  const std::vector<DataType>& arg_types() const override { return args_; }
  const std::vector<DataType>& result_types() const override {
    return results_;
  }
  void call(std::vector<Tensor> args, const devices::CallGroup& group,
            Done done) const override {
    if (const auto function = function_.lock())
      return function->call(std::move(args), group, std::move(done));
    done(closed_functions());
  }

 private:
  const std::weak_ptr<const devices::HostedFunction> function_;
  const std::vector<DataType> args_, results_;
};

}  // namespace

std::shared_ptr<devices::CallGroup> WorkerCalls::make_group() {
  return std::make_shared<Group>();
}

void WorkerCalls::post(std::function<void()> work) {
  run_on_worker(devices_->engine().scheduler(), std::move(work));
}

int WorkerCalls::parallelism() const { return devices_->engine().workers(); }

// The same functions for the inner session, which does not keep them.
class SessionFunctions::Inner final : public WorkerCalls {
 public:
  Inner(std::shared_ptr<DeviceSet> devices,
        std::weak_ptr<SessionFunctions> functions)
      : WorkerCalls(std::move(devices)), functions_(std::move(functions)) {}

  Library own_functions() const override {
    const auto functions = functions_.lock();
    return functions == nullptr ? nullptr : functions->own_functions();
  }
  Result<std::shared_ptr<const devices::HostedFunction>> find(
      const FunctionRef& function, const Library& library) override {
    const auto functions = functions_.lock();
    if (functions == nullptr) return closed_functions();
    TAGFLOW_ASSIGN(const auto found, functions->find(function, library));
    return {std::make_shared<const WeakFunction>(found)};
  }

 private:
  const std::weak_ptr<SessionFunctions> functions_;
};

class SessionFunctions::Hosted final : public devices::HostedFunction {
 public:
  Hosted(FunctionRef function, Library library, std::vector<DataType> args,
         std::vector<DataType> results, Callable callable)
      : function_(std::move(function)),
        library_(std::move(library)),
        args_(std::move(args)),
        results_(std::move(results)),
        callable_(std::move(callable)) {}

  bool is(const FunctionRef& function, const Library& library) const {
    return function.name == function_.name &&
           function.attrs == function_.attrs && library == library_;
  }
  const std::vector<DataType>& arg_types() const override { return args_; }
  const std::vector<DataType>& result_types() const override {
    return results_;
  }
  void call(std::vector<Tensor> args, const devices::CallGroup& group,
            Done done) const override {
    RunOptions options;
    options.cancel = static_cast<const Group&>(group).token();
    callable_.run_async(
        args, options,
        [done = std::move(done)](Result<std::vector<Tensor>> answer,
                                 const RunStats&) { done(std::move(answer)); });
  }

 private:
  const FunctionRef function_;
  const Library library_;
  const std::vector<DataType> args_, results_;
  const Callable callable_;
};

SessionFunctions::SessionFunctions(
    SessionOptions options, std::shared_ptr<DeviceSet> devices,
    std::shared_ptr<const devices::HostAccess> host, Present present,
    Library own)
    : WorkerCalls(std::move(devices)),
      host_(std::move(host)),
      options_(inner_options(std::move(options), devices_)),
      own_(std::move(own)),
      present_(std::move(present)) {}

SessionFunctions::~SessionFunctions() = default;

Status SessionFunctions::open() {
  if (is_closed_) return closed_functions();
  if (inner_ != nullptr) return {};
  SessionOptions options = options_;
  options.state = std::make_shared<SharedState>(devices_);
  // Functions may make datasets, whose functions are those of this session.
  inner_host_ = std::make_shared<Inner>(devices_, weak_from_this());
  options.backend = std::make_shared<LocalBackend>(
      options.state, devices_, host_->with_functions(inner_host_));
  TAGFLOW_ASSIGN(inner_, Session::create(std::move(options)));
  return {};
}

Result<std::shared_ptr<const devices::HostedFunction>> SessionFunctions::find(
    const FunctionRef& function, const Library& library) {
  const Library& from = library == nullptr ? own_ : library;
  return guarded(
      "session",
      [&]() -> Result<std::shared_ptr<const devices::HostedFunction>> {
        const std::lock_guard lock(mutex_);
        TAGFLOW_RETURN_IF_ERROR(open());
        const auto [begin, end] = made_.equal_range(function.name);
        for (auto it = begin; it != end; ++it)
          if (it->second->is(function, from)) return {it->second};
        TAGFLOW_ASSIGN(auto made, make(function, from));
        made_.emplace(function.name, made);
        return {std::move(made)};
      });
}

Result<std::shared_ptr<const SessionFunctions::Hosted>> SessionFunctions::make(
    const FunctionRef& function, const Library& library) {
  graph::Graph graph;
  // With those of datasets that functions of another library have made.
  graph.library() = inner_->graph().library();
  TAGFLOW_RETURN_IF_ERROR(
      graph.library().merge(library == nullptr ? present_() : *library));
  TAGFLOW_ASSIGN(const auto instance,
                 graph::FunctionInstance::bind(graph.library(), function));
  const std::vector<DataType>& args = instance.arg_types();
  const std::vector<DataType>& results = instance.result_types();
  // A number, since names of functions may be none of nodes.
  const std::string name = fmt::format("f{}", ++num_made_);
  std::vector<graph::NodeDef> nodes;
  graph::NodeDef call{name, "PartitionedCall", {}, {}, {}};
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string arg = fmt::format("{}/arg_{}", name, i);
    nodes.push_back({arg, "Placeholder", {}, {}, {{"dtype", args[i]}}});
    call.inputs.push_back(arg);
    feeds.push_back(arg + ":0");
  }
  for (size_t i = 0; i < results.size(); ++i)
    fetches.push_back(fmt::format("{}:{}", name, i));
  call.attrs = {{"f", function}, {"Tin", args}, {"Tout", results}};
  nodes.push_back(std::move(call));
  TAGFLOW_RETURN_IF_ERROR(graph.extend(nodes));
  TAGFLOW_RETURN_IF_ERROR(inner_->extend(graph));
  TAGFLOW_ASSIGN(Callable callable,
                 inner_->make_callable(feeds, fetches, {name}));
  return std::make_shared<const Hosted>(function, library, args, results,
                                        std::move(callable));
}

Status SessionFunctions::close(
    std::optional<std::chrono::nanoseconds> deadline) {
  std::shared_ptr<Session> inner;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    present_ = nullptr;
    inner = inner_;
  }
  if (inner == nullptr) return {};
  TAGFLOW_RETURN_IF_ERROR(
      inner->close(deadline).with_prefix("[functions of datasets] "));
  // What is in the state of the inner session may keep this.
  std::multimap<std::string, std::shared_ptr<const Hosted>> made;
  const std::lock_guard lock(mutex_);
  made.swap(made_);
  inner_ = nullptr;
  return {};
}

}  // namespace tagflow::actors
