// Swapper: moves what lies deep in stacks from an accelerator's memory to the
// host's, and back before it is popped.
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
// A loop saves values on stacks for its gradient, and what lies deep in them is
// not needed for long. Where more than kSwapAbove of an accelerator's memory is
// in use, such values are copied to the host, and their memory is given back.
// Where less than kRefillBelow is, they come again. With memory enough nothing
// is copied.
//
// Many stacks are popped, together, in about the reverse order of all pushes.
// So values are numbered as they are pushed, and the last one that was popped
// says where the program is. What was pushed just before it is popped next. All
// that was pushed after it belongs to something later. Thus values leave in the
// order of their numbers from the last popped on, and around from the first; so
// a forward loop gives away its oldest. They come back from the last popped
// downwards.
//
// A value may be in several stacks, as the state of a recurrent network is. It
// is one SavedTensor then, which has the number of its last push.
//
// A pop whose value is on the host is launched when that has come
// (SavedTensor::fetch). An allocation that does not fit waits for values to
// leave (make_room), but only on the accelerator's own threads. Note [Moves] in
// swapper.cpp has the invariants.
//
// Thread-safe.
class Swapper : public std::enable_shared_from_this<Swapper> {
 public:
  // `memory` counts what is in use; `limit` is how many bytes there are.
  // Neither that nor the accelerator is touched after close().
  Swapper(Accelerator& accelerator, const MemoryLedger& memory, int64_t limit);
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;

  // What the calling thread may wait for in make_room(): Note [Moves].
  enum class Waits : uint8_t { kNever, kForLeaving, kForAll };
  static void set_thread_waits(Waits waits);

  // Numbers a value that is pushed. REQUIRES: it is plain, in the memory.
  SavedOwner keep(Tensor value, uint64_t step);
  // Has values leave, as they would be popped last. True where some memory was
  // given back, so that who needs `bytes` may try again; false where nothing
  // can leave, or the thread may not wait.
  bool make_room(size_t bytes);
  // Fills in what was swapped.
  void add_to(MemoryStats& stats) const;
  // Nothing begins to move any more. What is moving is to be answered before
  // the accelerator goes.
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
  // What to do with a value: given by the mutex, done without it.
  struct Step {
    enum class Kind : uint8_t { kNothing, kDrop, kLeave, kCome };
    Kind kind = Kind::kNothing;
    Ref<SavedTensor> saved;
    Tensor tensor;  // to be dropped, or copied
  };

  // For the values themselves.
  Tensor read(SavedTensor& saved);
  Tensor take(SavedTensor& saved);
  void fetch(SavedTensor& saved, SavedTensor::Fetched done);
  void forget(SavedTensor& saved);

  // By the mutex.
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
  mutable std::mutex mutex_;  // guards all below, and what is in the values
  std::condition_variable changed_;
  bool closed_ = false;
  bool balancing_ = false;  // some thread is, and looks again
  bool look_again_ = false;
  uint64_t pushed_ = 0;       // the number of the last one
  uint64_t last_popped_ = 0;  // 0: none was
  uint64_t looked_at_ = 0;    // the last one that was asked to leave
  bool refill_failed_ = false;
  // All, by where they are; those that are here also by their buffers.
  ByNumber here_, away_;
  Values<SavedByBuffer, BufferOf> buffers_;
  int num_leaving_ = 0, num_coming_ = 0;
  int64_t leaving_ = 0, coming_ = 0;  // bytes
  uint64_t events_ = 0, freed_ = 0;   // moves that ended; and gave back memory
  int64_t swapped_out_ = 0, swapped_in_ = 0;
  int64_t num_left_ = 0;  // values, so far
  bool host_is_short_ = false;
};

// An allocator whose buffers may be swapped.
class SwappableMemory {
 public:
  virtual ~SwappableMemory() = default;
  // Null where they are not.
  virtual Swapper* swapper() const = 0;
};

}  // namespace tagflow::devices
