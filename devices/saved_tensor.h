// SavedTensor: a value in a stack, which may be on the host for a while.
#pragma once

#include <boost/intrusive/set_hook.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "devices/kernel.h"
#include "graph/ref.h"

namespace tagflow::devices {

class Swapper;

// A hook of the sets that contain a value.
template <class Tag>
using SavedHook = boost::intrusive::set_base_hook<
    boost::intrusive::tag<Tag>,
    boost::intrusive::link_mode<boost::intrusive::safe_link>>;

// A value in the memory of an accelerator that swaps; made by save(): Note
// [Swapping] in devices/swapper.h. Its owners are the places in stacks that it
// was pushed to; a holder of only a Ref may find it given up. Thread-safe.
class SavedTensor final : public RefCounted,
                          public SavedHook<struct SavedByNumber>,
                          public SavedHook<struct SavedByBuffer> {
 public:
  using Fetched = std::function<void()>;

  SavedTensor(std::shared_ptr<Swapper> swapper, Tensor value, uint64_t step);

  // Returns the value, in the memory where it is. It has been popped. REQUIRES:
  // called for an owner.
  Tensor read();
  // As read(), for a value that nobody can pop again.
  Tensor take();
  // Removes one owner. Without owners the value is released, and moved no more.
  void give_up();
  // Calls `done` once, when the value is in the accelerator's memory or could
  // not be moved: now or later, from any thread. It stays until it is popped.
  void fetch(Fetched done);

 private:
  friend class Swapper;
  enum class Moves : uint8_t { kNot, kLeaving, kComing };

  const std::shared_ptr<Swapper> swapper_;
  const uint64_t step_;
  const int64_t bytes_;
  // Guarded by the swapper's mutex.
  uint64_t number_ = 0;  // of its last push, in the order of all pushes
  int owners_ = 1;
  Tensor here_;  // in the accelerator's memory, or not valid
  Tensor away_;  // the host's copy, or not valid
  Moves moves_ = Moves::kNot;
  bool is_wanted_ = false;  // it will be popped next
  // The number of departures so far when the host had no memory for it; it is
  // retried after one more.
  int64_t refused_after_ = -1;
  std::vector<Fetched> waiting_;
};

struct GiveUpSaved {
  void operator()(SavedTensor* saved) const {
    saved->give_up();
    saved->release();
  }
};
using SavedOwner = std::unique_ptr<SavedTensor, GiveUpSaved>;

// What a stack keeps in place of a value that is pushed. Null if the value
// stays as it is: it is not plain, or not in an accelerator's memory. Throws
// std::bad_alloc. Thread-safe.
SavedOwner save(const Tensor& value, uint64_t step);

// A kernel that takes a value from a stack.
class SavedReader {
 public:
  virtual ~SavedReader() = default;
  // What compute() will take. Null if no swapper keeps it, or the stack is
  // empty. Thread-safe.
  virtual Ref<SavedTensor> next_saved(const KernelContext& context) const = 0;
};

// As SavedReader::next_saved(), for any kernel; null if it is not a
// SavedReader.
Ref<SavedTensor> next_saved(const Kernel& kernel, const KernelContext& context);

}  // namespace tagflow::devices
