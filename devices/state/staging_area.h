// Staging areas: tuples that runs pass to other runs.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "devices/state/actor_kernel.h"
#include "devices/state/saved_contents.h"

namespace tagflow::devices {

// The limits of a staging area; a put beyond them waits.
struct StagingLimits {
  int64_t capacity = 0;  // tuples; 0: any number
  int64_t bytes = 0;     // 0: any number
};

// The common part of both kinds: they count their contents. Waiting operations
// are served as soon as possible, in any order.
class StagingArea : public StateActor, public SavedContents {
 public:
  StagingArea(std::string name, const StagingLimits& limits)
      : name_(std::move(name)), limits_(limits) {}

  const StagingLimits& limits() const { return limits_; }
  std::string describe() const override;
  std::string describe_state() const override;
  // Thread-safe.
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  // ResourceExhausted if so many bytes can never fit. Thread-safe.
  Status check_bytes(const KernelContext& context, int64_t bytes) const;

 protected:
  bool is_in_order() const override { return false; }
  // Whether so many more tuples and bytes may be put in.
  bool has_space(int64_t tuples, int64_t bytes) const;
  void note(int64_t tuples, int64_t bytes) {
    size_.store(tuples, std::memory_order_relaxed);
    bytes_ = bytes;
  }
  int64_t bytes() const { return bytes_; }
  // Counts the memory of one more tuple of `width`, or no longer that of one.
  Status count_tuple(const KernelContext& context, size_t width);
  void discount_tuple(size_t width) noexcept;
  void discount_all() noexcept { charge_.clear(); }

 private:
  const std::string name_;
  const StagingLimits limits_;
  std::atomic<int64_t> size_{0};
  int64_t bytes_ = 0;
  MemoryCharge charge_;
};

// The bytes of tensors, without strings.
int64_t bytes_of(std::span<const Tensor> tensors);

// First in, first out.
class StagingList final : public StagingArea {
 public:
  using Tuple = std::vector<Tensor>;
  static constexpr std::string_view kKind = "staging area";
  using StagingArea::StagingArea;

  // --- Called inside.
  bool may_put(int64_t bytes) const { return has_space(1, bytes); }
  Status put(const KernelContext& context, std::span<const Tensor> values);
  // Null if it does not exist.
  const Tuple* at(int64_t index) const;
  // REQUIRES: there is one.
  Tuple pop() noexcept;
  void clear() noexcept override;
  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 private:
  std::deque<Tuple> tuples_;
};

// By key. Tuples are put in part by part, and may be taken that way.
class StagingMap final : public StagingArea {
 public:
  static constexpr std::string_view kKind = "staging map";
  // An invalid tensor is a part that is missing, or was taken.
  using Tuple = std::vector<Tensor>;
  using StagingArea::StagingArea;

  // --- Called inside.
  int64_t incomplete() const { return int64_t(incomplete_.size()); }
  // Whether the parts of a key may be put in: a part of an existing tuple needs
  // no further place.
  bool may_put(int64_t key, int64_t bytes) const;
  // Puts parts `indices` of a tuple of `width`; InvalidArgument if one exists.
  Status put(const KernelContext& context, int64_t key, size_t width,
             std::span<const int32_t> indices, std::span<const Tensor> values);
  // The whole tuple of a key, or of any; null if it does not exist.
  const Tuple* find(int64_t key) const;
  std::optional<int64_t> any_key() const;
  // Takes parts of a tuple; removes the tuple with its last part. REQUIRES:
  // they exist.
  void take(int64_t key, std::span<const int32_t> indices) noexcept;
  void clear() noexcept override;
  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 private:
  void count(int64_t more_bytes);
  std::map<int64_t, Tuple> complete_, incomplete_;
};

}  // namespace tagflow::devices
