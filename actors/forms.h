// Forms: a signature compiled for what its runs have in common.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "actors/frozen_variables.h"
#include "actors/signature_cache.h"
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

// A form, and what it is for.
struct Form {
  std::shared_ptr<const Prepared> prepared;  // null: there is nothing to gain
  FrozenVariables variables;
};

// Those of one signature. Thread-safe.
class Forms {
 public:
  // There is a form for each list of shapes that the feeds of these numbers
  // have; for all runs one where there are none.
  Forms(Signature signature, std::vector<size_t> open_feeds)
      : signature_(std::move(signature)), open_feeds_(std::move(open_feeds)) {}

  using Make = std::function<Result<Form>(const Signature& signature,
                                          std::span<const Tensor> feeds)>;
  // The form for a run that starts now with these feeds; null where that is the
  // usual one. Calls `make` where a form is due, unless that is null, on this
  // thread, and on no other at the same time for these shapes.
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
    int64_t runs = 0;        // with this form, or since there is none
    int wait = kFewestRuns;  // so many before a form is made
    uint64_t last_run = 0;
  };

  // That of the feeds' shapes: a new one, in place of the one that was used
  // longest ago, `old`, where there is none. REQUIRES: the mutex is held.
  std::shared_ptr<Slot> slot_for(std::span<const Tensor> feeds,
                                 std::shared_ptr<Slot>& old);
  bool is_for(const Slot& slot, std::span<const Tensor> feeds) const;

  const Signature signature_;
  const std::vector<size_t> open_feeds_;
  std::mutex mutex_;  // guards the below, slots too
  std::vector<std::shared_ptr<Slot>> slots_;
  uint64_t num_runs_ = 0;
};

}  // namespace tagflow::actors
