// Swapper: moves values deep in stacks from an accelerator's memory to the
// host's, and back before they are popped.
#pragma once

#include <boost/intrusive/set.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "devices/memory_stats.h"
#include "devices/saved_tensor.h"

namespace tagflow::devices {

class Accelerator;
class MemoryLedger;

// Note [Swapping]
//
// A loop saves values on stacks for its gradient, and values deep in them are
// not needed for long. If more than kSwapAbove of an accelerator's memory is
// in use, such values are copied to the host, and their memory is freed. If
// less than kRefillBelow is in use, they are copied back. If memory suffices,
// nothing is copied.
//
// Many stacks are popped, together, in about the reverse order of all pushes.
// So values are numbered as they are pushed, and the last popped value gives
// the position of the program. The value that was pushed just before it is
// popped next. All values that were pushed after it belong to something later.
// Thus values leave in the order of their numbers from the last popped one on,
// wrapping around to the first; so a forward loop gives away its oldest. They
// come back from the last popped one downwards.
//
// A value may be in several stacks, as the state of a recurrent network is. It
// is one SavedTensor then, with the number of its last push.
//
// A pop whose value is on the host is launched when the value has come back
// (SavedTensor::fetch). An allocation that does not fit waits for values to
// leave (make_room), but only on the accelerator's own threads. Note [Moves] in
// swapper.cpp has the invariants.
//
// Thread-safe.
class Swapper : public std::enable_shared_from_this<Swapper> {
 public:
  // `memory` counts the bytes in use; `limit` is the total. Neither `memory`
  // nor the accelerator is accessed after close().
  Swapper(Accelerator& accelerator, const MemoryLedger& memory, int64_t limit);
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;

  // What the calling thread may wait for in make_room(): Note [Moves].
  enum class Waits : uint8_t { kNever, kForLeaving, kForAll };
  static void set_thread_waits(Waits waits);

  // Numbers a pushed value. REQUIRES: it is plain, in the accelerator's memory.
  SavedOwner keep(Tensor value, uint64_t step);
  // Makes values leave, those first that will be popped last. True if some
  // memory was freed, so that a request for `bytes` can be retried; false if
  // nothing can leave, or the thread may not wait.
  bool make_room(size_t bytes);
  // Adds the swapped bytes.
  void add_to(MemoryStats& stats) const;
  // Starts no more moves. Those in progress must be answered before the
  // accelerator is destroyed.
  void close();

 private:
  friend class SavedTensor;
  struct NumberOf {
    using type = uint64_t;
    type operator()(const SavedTensor& saved) const;
  };
  struct BufferOf {
    using type = const Buffer*;
    type operator()(const SavedTensor& saved) const;
  };
  template <class Tag, class Key>
  using Values =
      boost::intrusive::set<SavedTensor,
                            boost::intrusive::base_hook<SavedHook<Tag>>,
                            boost::intrusive::key_of_value<Key>>;
  using ByNumber = Values<SavedByNumber, NumberOf>;
  // What to do with a value: decided with the mutex held, done without it.
  struct Step {
    enum class Kind : uint8_t { kNothing, kDrop, kLeave, kCome };
    Kind kind = Kind::kNothing;
    Ref<SavedTensor> saved;
    Tensor tensor;  // to be dropped, or copied
  };

  // For SavedTensor.
  Tensor read(SavedTensor& saved);
  Tensor take(SavedTensor& saved);
  void fetch(SavedTensor& saved, SavedTensor::Fetched done);
  void forget(SavedTensor& saved);

  // REQUIRES for these: mutex_ is held.
  static bool is_kept(const SavedTensor& saved);
  SavedTensor* find(const Tensor& value);
  void add_here(SavedTensor& saved);
  Tensor remove_here(SavedTensor& saved);
  bool can_leave(const SavedTensor& saved) const;
  Step next_to_leave(size_t most_looked_at);
  Step next_to_come();
  Step begin_to_come(SavedTensor& saved);
  void note_popped(SavedTensor& saved);

  void balance();
  void carry_out(Step step);
  void has_left(SavedTensor& saved, Result<Tensor> copy);
  void has_come(SavedTensor& saved, Result<Tensor> copy);
  void note_event(bool freed);

  Accelerator& accelerator_;
  const MemoryLedger& memory_;
  const int64_t limit_;
  mutable std::mutex mutex_;  // guards all below, and the values' own fields
  std::condition_variable changed_;
  bool closed_ = false;
  bool balancing_ = false;  // a thread balances, and will check again
  bool look_again_ = false;
  uint64_t pushed_ = 0;       // the number of the last one
  uint64_t last_popped_ = 0;  // 0: none was
  uint64_t looked_at_ = 0;    // the last one that was considered for leaving
  bool refill_failed_ = false;
  // All values, by where they are; those that are here also by their buffers.
  ByNumber here_, away_;
  Values<SavedByBuffer, BufferOf> buffers_;
  int num_leaving_ = 0, num_coming_ = 0;
  int64_t leaving_ = 0, coming_ = 0;  // bytes
  uint64_t events_ = 0, freed_ = 0;   // moves that ended; that freed
  int64_t swapped_out_ = 0, swapped_in_ = 0;
  int64_t num_left_ = 0;  // values, so far
  bool host_is_short_ = false;
};

// An allocator whose buffers may be swapped.
class SwappableMemory {
 public:
  virtual ~SwappableMemory() = default;
  // Null if its buffers are not swapped.
  virtual Swapper* swapper() const = 0;
};

}  // namespace tagflow::devices
