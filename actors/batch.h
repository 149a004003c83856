// Batch: the message of the engine: tagged tokens that travel together.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/tensor.h"

namespace tagflow::actors {

class EngineActor;
class Step;
struct ConstSet;
struct KernelRequest;

// A token on its way: (value, is_dead) at an arrival of its destination. The
// tag is the batch's, since all tokens of a batch share it.
struct Token {
  Token() = default;
  Token(uint32_t to, bool dead, Tensor what)
      : arrival(to), is_dead(dead), value(std::move(what)) {}

  uint32_t arrival = 0;
  bool is_dead = false;
  Tensor value;
};

enum class BatchKind : uint8_t {
  kStart,   // partition: begin a step (tokens: the feeds)
  kEnter,   // frame: tokens from the parent through Enters
  kTokens,  // iteration: tokens from its predecessor or its frame
  kExit,    // frame: tokens of Exits; parent iteration: the same, passed on
  kKernel,  // iteration: a kernel has finished; device, lane: one to run
  kIdle,    // device: a lane is free
};

// Note [Counted ends]
// Batches may overtake one another: one may wait in a runner's queue while
// another thread hands the next one over. So an end is never taken from the
// order of batches: a final one says how many there are, and the receiver acts
// on it when it has them all.
//
// Owned by exactly one party at a time: the sender until it is posted, the
// receiver from then on, who reuses it for what it sends next. So a steady
// loop allocates none.
struct Batch {
  BatchKind kind = BatchKind::kTokens;
  // kTokens: the predecessor is retired. kExit: the frame has ended.
  bool final = false;
  uint32_t count = 0;       // of a final one: Note [Counted ends]
  uint32_t exits = 0;       // kTokens, final: kExit batches sent so far
  uint32_t ordinal = 0;     // kExit to a parent: which child frame
  int64_t iteration = 0;    // of the receiving or the answering iteration
  uint64_t generation = 0;  // of the receiving frame instance
  Step* step = nullptr;     // on whose account it travels
  const ConstSet* constants = nullptr;  // kTokens: the loop constants so far
  EngineActor* sender = nullptr;        // kEnter: the parent iteration
  KernelRequest* request = nullptr;     // kKernel
  std::vector<Token> tokens;
  Batch* next = nullptr;  // in an inbox
};

// Batches at rest, for reuse. Not thread-safe: each actor has its own.
class BatchPool {
 public:
  BatchPool() = default;
  BatchPool(const BatchPool&) = delete;
  BatchPool& operator=(const BatchPool&) = delete;
  ~BatchPool() {
    for (Batch* batch : free_) delete batch;
  }

  Batch* take(BatchKind kind) {
    if (free_.empty()) {
      auto* batch = new Batch;
      batch->kind = kind;
      return batch;
    }
    Batch* batch = free_.back();
    free_.pop_back();
    batch->kind = kind;
    return batch;
  }
  // Keeps a few; the rest goes back to the system.
  void give(Batch* batch) {
    if (free_.size() >= kKept) {
      delete batch;
      return;
    }
    batch->tokens.clear();
    batch->final = false;
    batch->constants = nullptr;
    batch->sender = nullptr;
    batch->request = nullptr;
    free_.push_back(batch);
  }

 private:
  static constexpr size_t kKept = 4;
  std::vector<Batch*> free_;
};

}  // namespace tagflow::actors
