// Batch: the engine's message: tagged tokens that travel together.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/kernel.h"
#include "graph/tensor.h"

namespace tagflow::actors {

class BatchStore;
class EngineActor;
class Step;
struct ConstSet;
struct KernelRequest;

// A token in a batch: (value, is_dead), and the number of the slot of its
// destination. All tokens of a batch share the batch's tag.
struct Token {
  static constexpr uint32_t kNobody = ~0u;
  // An arrival of the iteration, or an exit, or an output of a call, as the
  // batch's kind says. kTransfers: the transfer's number. kReceived: the Recv,
  // a node.
  uint32_t slot = 0;
  bool is_dead = false;
  // kTransfers only: the Recv that requests the token; kNobody: the token is
  // sent.
  uint32_t waiter = kNobody;
  Tensor value;
};

// The tokens of a batch. Unlike std::vector, it reuses token objects instead of
// constructing and destroying them, so that add() is a few instructions in the
// caller. Tokens beyond size() hold no value.
class TokenList {
 public:
  Token* begin() { return tokens_.get(); }
  Token* end() { return begin() + size_; }
  size_t size() const { return size_; }
  // Adds a token without a value.
  [[gnu::always_inline]] Token& add(uint32_t slot, bool is_dead = false) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    Token& token = tokens_[size_++];
    token.slot = slot;
    token.is_dead = is_dead;
    return token;
  }
  // Empties the list after the caller has taken all values. truncate() would
  // check each token. REQUIRES: no token holds a value.
  void clear_taken() {
    assert(std::ranges::none_of(
        *this, [](const Token& token) { return token.value.valid(); }));
    size_ = 0;
  }
  // Keeps the first `size` of them.
  void truncate(size_t size) {
    Token* const end = this->end();
    for (Token* token = begin() + size; token != end; ++token)
      token->value.reset();
    size_ = size;
  }

 private:
  [[gnu::noinline]] void grow() {
    const size_t capacity = std::max<size_t>(2 * capacity_, 2);
    auto larger = std::make_unique<Token[]>(capacity);
    std::move(begin(), end(), larger.get());
    tokens_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<Token[]> tokens_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

enum class BatchKind : uint8_t {
  kStart,      // partition: begin a step (tokens: the feeds)
  kEnter,      // frame: tokens from the parent through Enters
  kTokens,     // iteration: tokens from its predecessor or its frame
  kExit,       // frame: tokens of Exits; parent iteration: the same, passed on
  kKernel,     // iteration: a kernel has finished; device, lane: one to run
  kIdle,       // device: a lane is free; iteration: continue after the end of
               // a time slice
  kTransfers,  // rendezvous: tokens that are sent or requested
  kReceived,   // iteration: tokens for its Recvs
};

// Note [Counted ends]
// Batches may overtake one another: one may wait in a runner's queue while
// another thread hands the next one over. So the order of batches never signals
// an end: the last batch carries the number of batches, and the receiver acts
// on it when it has received all.
//
// A batch has exactly one owner at a time: the sender until it is posted, then
// the receiver, which reuses it for its next batch. So a steady loop allocates
// none.
struct Batch {
  BatchKind kind = BatchKind::kTokens;
  // kTokens: the predecessor is retired. kExit: the frame has ended.
  bool is_last = false;
  uint32_t count = 0;       // of the last one: Note [Counted ends]
  uint32_t exits = 0;       // kTokens, is_last: kExit batches sent so far
  uint32_t ordinal = 0;     // kEnter, kExit to a parent: which child frame
  int64_t iteration = 0;    // of the receiving or the answering iteration
  uint64_t generation = 0;  // of the receiving frame instance
  uint32_t pass = 0;        // of the command of a Hold that lets it go
  Step* step = nullptr;     // the step that it belongs to
  const ConstSet* constants = nullptr;  // kTokens: the loop constants so far
  // kEnter: the parent iteration. kTransfers: the iteration.
  EngineActor* sender = nullptr;
  EngineActor* receiver = nullptr;   // kReceived
  devices::Tag tag;                  // kTransfers
  KernelRequest* request = nullptr;  // kKernel
  TokenList tokens;
  EngineActor* target = nullptr;  // the actor to which a runner delivers it
  Batch* next = nullptr;          // in a runner's queue, an inbox, or a pool
  BatchStore* home = nullptr;     // its store, if any
  Batch* store_next = nullptr;    // of its home
  Batch* store_previous = nullptr;
};

// Owns the batches of one run's actors, wherever they are: a batch that is lost
// by an exception of a handler is freed with the run's actors. Thread-safe.
class BatchStore {
 public:
  BatchStore() = default;
  // REQUIRES: no actor will use its batches again.
  ~BatchStore() {
    while (first_ != nullptr) delete std::exchange(first_, first_->store_next);
  }
  BatchStore(const BatchStore&) = delete;
  BatchStore& operator=(const BatchStore&) = delete;

  Batch* make() {
    auto* batch = new Batch;
    batch->home = this;
    std::lock_guard lock(mutex_);
    batch->store_next = first_;
    if (first_ != nullptr) first_->store_previous = batch;
    first_ = batch;
    return batch;
  }
  // Frees a batch, which may have no store. `batch` may be null.
  static void free(Batch* batch) {
    if (batch == nullptr) return;
    if (batch->home != nullptr) batch->home->forget(*batch);
    delete batch;
  }

 private:
  void forget(Batch& batch) {
    std::lock_guard lock(mutex_);
    (batch.store_previous == nullptr ? first_
                                     : batch.store_previous->store_next) =
        batch.store_next;
    if (batch.store_next != nullptr)
      batch.store_next->store_previous = batch.store_previous;
  }

  std::mutex mutex_;  // guards the list
  Batch* first_ = nullptr;
};

// Unused batches, for reuse. Not thread-safe: each actor has its own pool.
class BatchPool {
 public:
  // Without a store, the pool owns its batches.
  explicit BatchPool(BatchStore* store = nullptr) : store_(store) {}
  BatchPool(const BatchPool&) = delete;
  BatchPool& operator=(const BatchPool&) = delete;
  ~BatchPool() {
    if (store_ != nullptr) return;
    while (free_ != nullptr) delete std::exchange(free_, free_->next);
  }

  Batch* take(BatchKind kind) {
    Batch* batch = free_;
    if (batch != nullptr) [[likely]] {
      free_ = batch->next;
      --kept_;
    } else {
      batch = make();
    }
    batch->kind = kind;
    return batch;
  }
  // Keeps a few batches, and frees further ones.
  void give(Batch* batch) {
    if (kept_ == kMostKept) {
      BatchStore::free(batch);
      return;
    }
    batch->tokens.truncate(0);
    batch->is_last = false;
    batch->constants = nullptr;
    batch->sender = nullptr;
    batch->request = nullptr;
    batch->next = std::exchange(free_, batch);
    ++kept_;
  }

 private:
  // Not inlined, so that take() is short.
  [[gnu::noinline]] Batch* make() {
    return store_ != nullptr ? store_->make() : new Batch;
  }

  static constexpr int kMostKept = 4;
  BatchStore* const store_;
  Batch* free_ = nullptr;  // a list
  int kept_ = 0;           // its length
};

}  // namespace tagflow::actors
