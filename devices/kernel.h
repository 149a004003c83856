// Kernel: an op's implementation on one type of device.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "devices/cancellation.h"
#include "devices/commit_gate.h"
#include "graph/attr.h"
#include "graph/memory_charge.h"
#include "graph/node.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

class KernelContext;

// What a kernel may read when it is made: its node, but no values.
class KernelInfo {
 public:
  explicit KernelInfo(const graph::Node& node) : node_(node) {}

  const graph::Node& node() const { return node_; }
  const std::string& name() const { return node_.name(); }
  int num_inputs() const { return node_.num_inputs(); }
  int num_outputs() const { return node_.num_outputs(); }
  DataType input_dtype(int i) const { return node_.input_dtypes()[size_t(i)]; }
  DataType output_dtype(int i) const {
    return node_.output_dtypes()[size_t(i)];
  }
  template <class T>
  Result<T> attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

 private:
  const graph::Node& node_;
};

// Computes an output from inputs that are all scalars held inline in their
// tokens. Returns false if they are not, or if compute() has to report an
// error; the output is then unchanged. Otherwise it is constructed in place, as
// in raw memory. REQUIRES: `output` holds no buffer. Thread-safe.
using ScalarFunction = bool (*)(const Tensor* inputs, Tensor& output);

// A synchronous kernel. One instance serves every run of its node in a session,
// from many threads at once: compute() must not change the kernel (state
// belongs in resources).
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Computes every output from the inputs. An error fails the step; the engine
  // adds the node, its device and its tag to the message. An exception is such
  // an error too: kernels are called by devices/state/guard.h. Thread-safe.
  virtual Status compute(KernelContext& context) const = 0;
  // Estimates the nanoseconds of compute() with these inputs, from their sizes.
  // What costs kHeavyNanoseconds or more may run as a request to the device's
  // lanes, and never runs on a thread that is only lent to the engine. What
  // costs more than kMostFoldedNanoseconds never runs while a graph is
  // compiled. A kernel that does not override this counts as expensive: derive
  // from CheapKernel if it never is.
  virtual double cost(const KernelContext& context) const;
  static constexpr double kUnknownCost =
      std::numeric_limits<double>::infinity();
  // Such a kernel is worth a hop to another worker, whose waking costs 5-10 us.
  static constexpr double kHeavyNanoseconds = 20e3;
  // A graph is compiled once and may never run.
  static constexpr double kMostFoldedNanoseconds = 1e6;
  // The engine calls this once per kernel. If it returns false, the engine
  // never calls cost().
  virtual bool may_be_expensive() const { return true; }
  // Whether the kernel can be expensive if every input is small (held inline
  // in its token), as Fill can. If it returns false, the engine calls cost()
  // for larger inputs only.
  virtual bool may_be_expensive_on_small_inputs() const { return true; }
  // Whether the kernel uses only host data, such as handles: then no
  // accelerator is asked to run it, though its node is placed there.
  virtual bool is_bookkeeping() const { return false; }
  // The kernel that identifies the node, if this one is a wrapper.
  virtual const Kernel& inner() const { return *this; }
  // A shortcut past compute() for a kernel with one output, or null: loop
  // counters run through it.
  virtual ScalarFunction scalar_function() const { return nullptr; }
};

// A kernel that takes a microsecond or two at most, whatever its inputs are,
// and never blocks.
class CheapKernel : public Kernel {
 public:
  double cost(const KernelContext& context) const final;
  bool may_be_expensive() const final { return false; }
};

// Called once when an asynchronous kernel is done, from any thread. The
// outputs are those set in the context by then.
using Completion = std::function<void(Status)>;

// Who can end the wait of an asynchronous kernel.
enum class WaitsFor : uint8_t {
  kOutside,      // anything but a step: a thread, a peer, a timer
  kSharedState,  // only another run on the same state, as a queue
};

// A kernel that waits for something (a receive, a queue, a stream) without
// holding a thread. Until it is done its step *waits*: the step is neither over
// nor deadlocked, and a time-out reports the wait.
class AsyncKernel : public Kernel {
 public:
  // A shortcut past compute_async() for results that can be computed at once:
  // the engine calls it first. Returns nothing if it has to wait, or might
  // have to: then nothing was changed. Returns soon. Thread-safe.
  virtual std::optional<Status> try_compute(KernelContext& context) const;
  // Returns soon; `done` is called exactly once, now or later, also if the
  // step is cancelled. `context` stays valid until then. If this throws, that
  // is the error, unless `done` was called; later calls have no effect.
  // Thread-safe.
  //
  // A kernel that may wait for long adds a CancelHook by
  // KernelContext::on_cancel(), so that a time-out, a cancellation, an error
  // elsewhere and the end of the session end the wait at once.
  virtual void compute_async(KernelContext& context, Completion done) const = 0;
  // The engine uses this to tell a step that may continue from a stalled one.
  virtual WaitsFor waits_for() const { return WaitsFor::kOutside; }
  // What an unfinished execution waits for, for messages: 'queue "q" has 0 of
  // 10 elements'. Empty if that is unknown. Called with locks of the step
  // held: it must not block, nor call the step. Thread-safe.
  virtual std::string describe_wait(const KernelContext& context) const;
  // Not used.
  Status compute(KernelContext& context) const final;
  // The cost of compute_async(), which returns soon.
  double cost(const KernelContext& context) const override;
  bool may_be_expensive() const override { return false; }
};

// What a kernel computes for the numbers in [begin, end). A RangeBody refers to
// a callable, which must outlive every call: a function that gets one keeps it
// no longer than it runs. It needs no allocation, and less code for each
// callable than std::function.
class RangeBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, RangeBody> &&
           std::is_invocable_v<const F&, int64_t, int64_t>)
      RangeBody(const F& callable)  // NOLINT: a lambda is one
      : callable_(&callable),
        call_([](const void* f, int64_t begin, int64_t end) {
          (*static_cast<const F*>(f))(begin, end);
        }) {}

  void operator()(int64_t begin, int64_t end) const {
    call_(callable_, begin, end);
  }

 private:
  const void* callable_;
  void (*call_)(const void* callable, int64_t begin, int64_t end);
};

// Runs shards of one kernel on several workers.
class Parallel {
 public:
  virtual ~Parallel() = default;
  // Calls body(begin, end) on disjoint parts that cover [0, total), some on
  // other workers; returns when all are done. The caller works too. `unit_cost`
  // is the estimated nanoseconds of one unit; small totals run inline. `body`
  // must be safe to run concurrently. If it throws, parts that have not begun
  // are skipped, the others finish, and the first exception is thrown here.
  virtual void run(int64_t total, double unit_cost, RangeBody body) = 0;
};

// Identifies an execution of a node: the frame instance and the iteration.
struct Tag {
  uint64_t frame_hi = 0, frame_lo = 0;  // 128-bit id; 0 is the root frame
  int64_t iteration = 0;
  bool operator==(const Tag&) const = default;
};

// Counts runs for random ops, which draw different numbers in each run: Note
// [Random keys] in devices/random_key.h.
class RandomRuns {
 public:
  virtual ~RandomRuns() = default;
  // The number of earlier runs in which the node took part, as counted by the
  // owner of the numbers, such as a session. The same in every call of one run.
  // Thread-safe.
  virtual int64_t earlier_runs(const std::string& node_name) = 0;
};

// Note [Interruption]
// A cancelled step is over when its kernels have returned. So a kernel that may
// work for long looks for a cancellation about every kBlockNanoseconds of its
// work: parallel_for() and for_blocks() do so between blocks of their ranges,
// and other loops call check_cancelled(). This ends the kernel by an exception,
// which becomes the status Cancelled (devices/state/guard.h). A kernel that
// changes state which outlives the step must not stop in the middle: nobody is
// interrupted while a kernel of the step holds a Commit. That does not keep
// memory from being exhausted: so it takes all memory before its first write.

// Facts about the step that its kernels share. Outlives their calls.
struct StepInfo {
  uint64_t step_id = 0;
  uint64_t seed = 0;  // of the session
  const std::atomic<bool>* cancelled = nullptr;
  Parallel* parallel = nullptr;  // null: no sharding
  // Whether kernels may reuse an input that nobody else needs as their output.
  bool forward_buffers = true;
  class StepResources* resources = nullptr;  // null: outside of a step
  class ResourceManager* state = nullptr;    // of the session; null: no session
  // Null outside of a step.
  CancelList* cancels = nullptr;
  CommitGate* commits = nullptr;
  RandomRuns* random_runs = nullptr;  // null: no earlier runs
};

// Everything one execution of a kernel sees and produces. Small, made for each
// firing.
class KernelContext {
 public:
  // For the engine and tests. Inputs and outputs are arrays owned by the
  // caller; `node` outlives the context.
  KernelContext(const graph::Node* node, std::span<Tensor> inputs,
                std::span<Tensor> outputs, const StepInfo* step, const Tag* tag,
                Allocator* allocator = &host_allocator())
      : node_(node),
        inputs_(inputs),
        outputs_(outputs),
        step_(step),
        tag_(tag),
        allocator_(allocator) {}

  int num_inputs() const { return int(inputs_.size()); }
  int num_outputs() const { return int(outputs_.size()); }
  const Tensor& input(int i) const { return inputs_[size_t(i)]; }
  std::span<const Tensor> inputs() const { return inputs_; }
  Tensor& output(int i) { return outputs_[size_t(i)]; }
  void set_output(int i, Tensor value) {
    outputs_[size_t(i)] = std::move(value);
  }

  // Output i of the node's output type and `shape`, elements uninitialised
  // (strings and handles default-constructed).
  Result<Tensor*> allocate_output(int i, const Shape& shape);
  // As allocate_output(), but reuses input `candidate` in place if its buffer
  // is in the same memory, nobody else holds it, and type and shape agree. Then
  // the output's elements ARE the input's: read element k before writing it.
  Result<Tensor*> forward_or_allocate(int candidate, int i, const Shape& shape);
  // As forward_or_allocate(), regardless of StepInfo::forward_buffers: for
  // values such as lists, where a change that is not in place copies
  // everything.
  Result<Tensor*> change_or_allocate(int candidate, int i, const Shape& shape);
  // As allocate_output(), but always in the host's memory: for a few numbers
  // that the kernel writes itself.
  Result<Tensor*> allocate_host_output(int i, const Shape& shape);
  Result<Tensor> allocate_temp(DataType dtype, const Shape& shape);

  // Makes `charge`, which belongs to a container, count `bytes`.
  // ResourceExhausted if that would exceed the limit of the host's memory that
  // the kernel uses; then it counts what it did before. what() is for the
  // message: 'stack "s"'. Thread-safe.
  template <class What>
  Status count(MemoryCharge& charge, size_t bytes, const What& what) const {
    if (charge.set(*allocator_, bytes)) [[likely]]
      return {};
    return out_of_memory(*allocator_, what(), bytes)
        .with_prefix(fmt::format("[{}] ", node_->op()));
  }

  // For accelerators, which replace inputs by copies in their memory.
  std::span<Tensor> mutable_inputs() const { return inputs_; }
  std::span<Tensor> mutable_outputs() const { return outputs_; }

  const graph::Node& node() const { return *node_; }
  const StepInfo& step() const { return *step_; }
  const Tag& tag() const { return *tag_; }
  Allocator& allocator() const { return *allocator_; }
  // As allocator(), or the host's if the host cannot read that memory.
  Allocator& host_memory() const {
    return allocator_->host_visible() ? *allocator_ : host_allocator();
  }
  bool cancelled() const {
    return step_->cancelled != nullptr &&
           step_->cancelled->load(std::memory_order_relaxed);
  }
  // Throws a StatusException with the code Cancelled if the step is cancelled,
  // unless a Commit of the step is held: Note [Interruption]. Takes about a
  // nanosecond. Thread-safe.
  void check_cancelled() const {
    if (cancelled()) [[unlikely]]
      interrupt();
  }
  // Calls `hook` if the step is cancelled: see devices/cancellation.h. Returns
  // false if the step is cancelled already; then nothing was added, and the
  // kernel answers Cancelled. Thread-safe.
  bool on_cancel(std::shared_ptr<CancelHook> hook) const {
    return step_->cancels == nullptr || step_->cancels->add(std::move(hook));
  }
  // A kernel changes state that outlives the step only while it holds a Commit
  // that is true: see devices/commit_gate.h. Thread-safe.
  Commit commit() const { return Commit(step_->commits); }
  // See Parallel::run; runs inline if the step has none. Calls `body` for
  // blocks of about kBlockNanoseconds, and check_cancelled() before each.
  // `call_cost` is the estimated nanoseconds that a call of `body` takes in
  // addition to those of its units: blocks are so long that this is a small
  // part of them.
  void parallel_for(int64_t total, double unit_cost, RangeBody body,
                    double call_cost = 0) const;
  // As parallel_for(), but on this thread, and block after block.
  void for_blocks(int64_t total, double unit_cost, RangeBody body) const;
  // Long enough that a block costs little more than its units.
  static constexpr double kBlockNanoseconds = 5e6;

  // "[op] what": an InvalidArgument, for kernels' checks.
  template <class... Args>
  Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return Status(Code::kInvalidArgument,
                  fmt::format("[{}] ", node_->op()) +
                      fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void interrupt() const;

  const graph::Node* node_;
  std::span<Tensor> inputs_;
  std::span<Tensor> outputs_;
  const StepInfo* step_;
  const Tag* tag_;
  Allocator* allocator_;
};

}  // namespace tagflow::devices
