// Forms: a signature, compiled for common properties of its runs.
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
// Passes optimise better if they know more. So a signature has, besides its
// usual form, which is correct for every run, forms that are correct for some
// runs:
//
//   - forms for the shapes of its feeds, if the graph does not define all
//     dimensions: then shapes are constants, and the operands of element-wise
//     ops are known to have equal shapes;
//   - forms for the versions of variables, if it only reads them: Note [Frozen
//     variables].
//
// If both apply, there is also a *general* form, for the versions of variables
// and any shapes. It serves the runs whose shapes have no form, such as those
// of a server's batches, each of which has another number of rows. It is made
// after twice as many runs, so that few shapes get their own forms instead.
//
// To make a form costs as much as to compile the signature. So it is made after
// some runs that could have used it; each form that was hardly used doubles the
// number of these runs for the next one. The number of forms is limited to the
// most recent shapes. The results of a form may differ from those of the usual
// form by rounding, as Notes [What is a layer] and [What is packed] say.

// A form, and the versions of variables that it is for. Keeps the variables
// alive.
struct Form {
  std::shared_ptr<const Prepared> prepared;  // null: the form has no advantage
  FrozenVariables variables;
};

// The forms of one signature. Thread-safe.
class Forms {
 public:
  // There is a form for each list of shapes of the feeds whose indices are
  // `open_feeds`; if that is empty, one form for all runs. `is_frozen` says
  // whether forms are for versions of variables.
  Forms(Signature signature, std::vector<size_t> open_feeds, bool is_frozen)
      : signature_(std::move(signature)),
        open_feeds_(std::move(open_feeds)),
        is_frozen_(is_frozen) {
    if (!is_frozen_ || open_feeds_.empty()) return;
    general_ = std::make_shared<Slot>();
    general_->wait = 2 * kFewestRuns;
  }

  // Makes a form for these shapes of all feeds; for any shapes if empty.
  using Make = std::function<Result<Form>(const Signature& signature,
                                          std::vector<Shape> feed_shapes,
                                          bool is_frozen)>;
  // The form for a run that starts now with these feeds; null if that is the
  // usual form. If a form is due and `make` is not null, calls `make` on this
  // thread, without the lock. No other thread makes a form for the same shapes
  // at the same time, unless their slot was replaced meanwhile. An error of
  // `make` is dropped, and the form is tried again later. REQUIRES: the feeds
  // were checked against the signature.
  std::shared_ptr<const Prepared> pick(std::span<const Tensor> feeds,
                                       const Make& make);

 private:
  static constexpr size_t kMostForms = 4;
  static constexpr int kFewestRuns = 4;
  static constexpr int kMostRuns = 4096;

  // The data of all runs with the same shapes.
  struct Slot {
    std::vector<Shape> shapes;  // of the open feeds
    Form form;
    bool is_making = false;
    int64_t runs = 0;  // with this form, or without any
    int wait = 0;      // runs before a form is made
    uint64_t last_run = 0;
  };

  // The slot of the feeds' shapes. If there is none, a new one is made. If
  // there is no room, it replaces the least recently used one, which is moved
  // to `old`. REQUIRES: the mutex is held.
  std::shared_ptr<Slot> slot_for(std::span<const Tensor> feeds,
                                 std::shared_ptr<Slot>& old);
  bool is_for(const Slot& slot, std::span<const Tensor> feeds) const;
  // The slot's form, for one more run, or null. One that is not current moves
  // to `old`. REQUIRES: the mutex is held.
  static std::shared_ptr<const Prepared> use(Slot& slot, Form& old);
  // Counts a run without a form, after which one may be due. REQUIRES: the
  // mutex is held.
  static bool is_due(Slot& slot);
  // The wait of the next slot, after one that had so many runs.
  static int next_wait(int wait, int64_t runs);

  const Signature signature_;
  const std::vector<size_t> open_feeds_;
  const bool is_frozen_;
  std::mutex mutex_;  // guards the below, slots too
  std::vector<std::shared_ptr<Slot>> slots_;
  std::shared_ptr<Slot> general_;  // null: there is no general form
  uint64_t num_runs_ = 0;
  int first_wait_ = kFewestRuns;  // of a new slot
};

}  // namespace tagflow::actors
