// Barrier: tuples that are assembled part by part, by key.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "devices/state/actor_kernel.h"
#include "devices/state/saved_contents.h"

namespace tagflow::devices {

// The settings from the node that makes a barrier.
struct BarrierSpec {
  std::vector<DataType> types;  // of the parts of a tuple
  // As many. Parts have any shapes if the rank is unknown.
  graph::PartialShapes shapes;
  // InvalidArgument, about the barrier of that description, unless `other` asks
  // for the same.
  Status check_same(std::string_view barrier, const BarrierSpec& other) const;
};

// A tuple is *incomplete* while a part is missing, then *ready*. Ready tuples
// are taken in the order of the insertions of their first parts.
//
// Life cycle: open; closed: rejects new keys, but accepts parts of incomplete
// tuples, unless it was closed in a way that drops these; ended, with its
// container.
class Barrier final : public StateActor, public SavedContents {
 public:
  static constexpr std::string_view kKind = "barrier";

  Barrier(std::string name, BarrierSpec spec)
      : name_(std::move(name)), spec_(std::move(spec)) {}

  const BarrierSpec& spec() const { return spec_; }
  std::string describe() const override;
  std::string describe_state() const override;
  // Thread-safe.
  int64_t ready() const { return num_ready_.load(std::memory_order_relaxed); }
  int64_t incomplete() const {
    return num_incomplete_.load(std::memory_order_relaxed);
  }

  // --- Called inside.
  bool is_closed() const { return is_closed_; }
  bool drops_incomplete() const { return drops_incomplete_; }
  // Inserts part `part` of the tuples of these keys, by rows. All or nothing:
  // InvalidArgument if a part exists already, Cancelled if the barrier is
  // closed; also errors of memory. REQUIRES: they are of the part's type and
  // shape.
  Status insert(const KernelContext& context, const Tensor& keys, size_t part,
                const Tensor& values);
  // Takes the next tuples as the outputs: numbers of insertions, keys and
  // parts. InvalidArgument if the shapes of parts are not declared, and differ;
  // then it takes nothing. REQUIRES: so many are ready.
  Status take(KernelContext& context, int64_t count);
  void close(bool drops_incomplete) noexcept;
  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 protected:
  void clear() noexcept override;

 private:
  struct Incomplete {
    int64_t insertion = 0;
    size_t missing = 0;
    std::vector<Tensor> parts;
  };
  struct Ready {
    std::string key;
    std::vector<Tensor> parts;
  };
  // The numbers of the insertion and of the completion.
  using Order = std::pair<int64_t, int64_t>;

  Status check_shapes(const KernelContext& context, size_t part,
                      std::span<const Tensor> parts) const;
  Status check_keys(const KernelContext& context, const Tensor& keys,
                    size_t part) const;
  // Commits an insertion that is fully prepared: the tuples that it begins, for
  // which memory is reserved, and those that it completes.
  void commit(const Tensor& keys, size_t part, std::vector<Tensor>& rows,
              std::unordered_map<std::string, Incomplete>& begun,
              std::map<Order, Ready>& completed) noexcept;
  void publish() noexcept;
  // The bytes of a tuple beside those of its parts.
  size_t bytes_of_tuple(std::string_view key) const;

  const std::string name_;
  const BarrierSpec spec_;
  MemoryCharge charge_;  // of all tuples
  std::unordered_map<std::string, Incomplete> incomplete_;
  std::map<Order, Ready> ready_;
  // TensorFlow starts there, too.
  int64_t insertions_ = std::numeric_limits<int64_t>::min();
  int64_t completions_ = 0;
  bool is_closed_ = false;
  bool drops_incomplete_ = false;
  std::atomic<int64_t> num_ready_{0};
  std::atomic<int64_t> num_incomplete_{0};
};

}  // namespace tagflow::devices
