// Forms: a signature compiled for what its runs have in common.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "actors/plan/frozen_variables.h"
#include "actors/session/signature_cache.h"
#include "graph/tensor.h"

namespace tagflow::actors {

// Note [Forms]
// Passes make more of what they know. So a signature has, beside its usual
// form, which is right for every run, forms that are right for some:
//
//   - for the shapes of its feeds, where the graph leaves dimensions open:
//     then shapes are constants, and element-wise ops are known to be of one
//     shape;
//   - for the versions of variables, where it only reads these:
//     Note [Frozen variables].
//
// A form costs as much as to compile the signature. So it is made after some
// runs that it would have done for, and each that was hardly used doubles the
// number of these. There are only so many, for the shapes that came last.
// What a form computes may be rounded in another order than in the usual one,
// as Notes [What is a layer] and [What is packed] say.

// A form, and what it is for. It keeps the variables alive.
struct Form {
  std::shared_ptr<const Prepared> prepared;  // null: there is nothing to gain
  FrozenVariables variables;
};

// Those of one signature. Thread-safe.
class Forms {
 public:
  // There is a form for each list of shapes that the feeds of these numbers
  // have; for all runs one where there are none. `is_frozen` says whether forms
  // are for versions of variables.
  Forms(Signature signature, std::vector<size_t> open_feeds, bool is_frozen)
      : signature_(std::move(signature)),
        open_feeds_(std::move(open_feeds)),
        is_frozen_(is_frozen) {}

  // Makes a form for these shapes of all feeds; for any where there are none.
  using Make = std::function<Result<Form>(const Signature& signature,
                                          std::vector<Shape> feed_shapes,
                                          bool is_frozen)>;
  // The form for a run that starts now with these feeds; null where that is the
  // usual one. Calls `make` where a form is due, unless that is null, on this
  // thread and without the lock; on no other at the same time for these shapes,
  // unless they lost their place meanwhile. What cannot be made is tried again
  // later; the error is dropped. REQUIRES: they are as many feeds as the
  // signature has, and were checked against it.
  std::shared_ptr<const Prepared> pick(std::span<const Tensor> feeds,
                                       const Make& make);

 private:
  static constexpr size_t kMostForms = 4;
  static constexpr int kFewestRuns = 4;
  static constexpr int kMostRuns = 4096;

  // What runs of the same shapes share.
  struct Slot {
    std::vector<Shape> shapes;  // of the open feeds
    Form form;
    bool is_making = false;
    int64_t runs = 0;  // with this form, or since there is none
    int wait = 0;      // so many before a form is made
    uint64_t last_run = 0;
  };

  // That of the feeds' shapes: a new one, in place of the one that was used
  // longest ago, `old`, where there is none. REQUIRES: the mutex is held.
  std::shared_ptr<Slot> slot_for(std::span<const Tensor> feeds,
                                 std::shared_ptr<Slot>& old);
  bool is_for(const Slot& slot, std::span<const Tensor> feeds) const;
  // How long the next one waits, after one that had so many runs.
  static int next_wait(int wait, int64_t runs);

  const Signature signature_;
  const std::vector<size_t> open_feeds_;
  const bool is_frozen_;
  std::mutex mutex_;  // guards the below, slots too
  std::vector<std::shared_ptr<Slot>> slots_;
  uint64_t num_runs_ = 0;
  int first_wait_ = kFewestRuns;  // of a new slot
};

}  // namespace tagflow::actors
