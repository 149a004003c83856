// Queue: elements that runs enqueue, dequeue, and wait for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/state/actor_kernel.h"
#include "devices/state/queue_elements.h"
#include "devices/state/saved_contents.h"

namespace tagflow::devices {

// The settings from the node that makes a queue.
struct QueueSpec {
  enum class Order : uint8_t { kFifo, kPadding, kShuffled, kPriority };

  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  // Reads the attributes of a node such as FIFOQueueV2. InvalidArgument if
  // no such queue can exist.
  static Result<QueueSpec> make(const KernelInfo& info);
  // InvalidArgument that names `queue`, and the difference, unless a node with
  // the settings `other` may share it.
  Status check_same(std::string_view queue, const QueueSpec& other) const;

  Order order = Order::kFifo;
  std::vector<DataType> types;  // of the components of an element
  // One per component, or none: any shapes. Fully known, except if elements
  // are padded.
  graph::PartialShapes shapes;
  int64_t capacity = kUnbounded;
  int64_t min_after_dequeue = 0;  // kept for shuffling, until it is closed
  int64_t seed = 0, seed2 = 0;
};

// Life cycle: open; closed: rejects new elements, and gives out those it has;
// ended, with its container.
//
// Invariants, beside those of StateActor:
//   1. Elements are given out in their order, whole, each once: they leave the
//      queue when the operation that takes them can no longer fail.
//   2. The elements that the first waiting dequeue_many could take are
//      *reserved* for it: they count neither as size nor against the capacity.
//      So it can get more than the capacity, and a cancellation returns them
//      without any action.
class Queue final : public StateActor, public SavedContents {
 public:
  static constexpr std::string_view kKind = "queue";

  // `session_seed` is for a shuffling queue without a seed.
  Queue(std::string name, QueueSpec spec, uint64_t session_seed);

  const std::string& name() const { return name_; }
  const QueueSpec& spec() const { return spec_; }
  // 'queue "q"'.
  std::string describe() const override;
  std::string describe_state() const override;
  // The number of elements that are not reserved. Thread-safe.
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  bool is_closed() const { return closed_.load(std::memory_order_relaxed); }

  // Checks values for the queue: types, and shapes, with one more dimension in
  // front if they are `many`. Thread-safe.
  Status check_values(const KernelContext& context,
                      std::span<const Tensor> values, bool many) const;

  // --- Called inside.
  // The number of elements that may be put in, and that may be taken out.
  int64_t space() const;
  int64_t available() const;
  // Puts one element in; if that fails or throws, the queue is unchanged.
  // REQUIRES: there is space.
  Status put(const KernelContext& context, std::span<const Tensor> values);
  // Puts rows [begin, end) of `values` in. REQUIRES: as for put().
  Status put_rows(const KernelContext& context, std::span<const Tensor> values,
                  int64_t begin, int64_t end);
  // Takes one out, as the kernel's outputs. REQUIRES: there is one.
  void take(KernelContext& context);
  // Takes `count` of them out, batched.
  Status take_many(KernelContext& context, int64_t count);
  void close();
  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 protected:
  void clear() noexcept override;
  void on_lines_changed() noexcept override { publish(); }

 private:
  int64_t reserved() const;
  // Makes room for so many more elements.
  Status reserve(const KernelContext& context, int64_t more) {
    return elements_->reserve(context, more, [this] {
      return fmt::format("{} with {} elements", describe(), elements_->size());
    });
  }
  // Updates what other threads may read.
  void publish() noexcept;
  // The shape of component `i` of `elements`, tuple after tuple, as a batch.
  Shape batch_shape(std::span<const Tensor> elements, size_t i) const;

  const std::string name_;
  const QueueSpec spec_;
  const std::unique_ptr<QueueElements> elements_;
  std::vector<Tensor> element_;  // in transit
  std::atomic<int64_t> size_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace tagflow::devices
