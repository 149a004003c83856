// TrainingKernel: one step of an optimizer on a variable and its slots.
//
// Note [Rules]
// An optimizer is only its rule: see devices/training_rules.h. The rest is
// common to all: Apply*, ResourceApply*, SparseApply* and ResourceSparseApply*
// of a name use one rule. 16-bit floats are computed in float, and rounded
// once.
//
// A dense step is one pass over all states, in place if nobody else has
// their buffers, and else into new ones. A sparse step changes rows, one after
// the other if an index is repeated, and copies a buffer at most the first
// time (Note [Versions of a variable] in devices/state/variable.h). If the
// CPU cannot access the states, an ElementMover does the dense step.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "devices/element_mover.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

// The operands of a rule: arrays of the kernel's type.
struct TrainingStep {
  std::vector<double> scalars;
  std::array<const void*, DenseTraining::kMostStates> before{};
  std::array<void*, DenseTraining::kMostStates> after{};  // may be `before`
  const void* gradient = nullptr;
  // For a sparse gradient: its row i is for row numbers[i] of the states.
  std::span<const int64_t> numbers;
  int64_t row = 0;  // elements per row
};

class TrainingKernel : public UpdateKernel {
 public:
  // `nanoseconds` is the cost of one element.
  TrainingKernel(const KernelInfo& info, int states, double nanoseconds);

  Status claim(const KernelContext& context, StateClaim& claim) const final;
  double cost(const KernelContext& context) const final;

 protected:
  Status update(KernelContext& context) const final;
  bool option() const { return option_; }

 private:
  struct States;

  // Applies the rule to elements [begin, end).
  virtual void apply(const TrainingStep& step, int64_t begin,
                     int64_t end) const = 0;
  // Applies it to the rows whose numbers are in [begin, end), in their order.
  virtual void apply_rows(const TrainingStep& step, int64_t begin,
                          int64_t end) const = 0;

  Status find_states(const KernelContext& context, States& states) const;
  Status read_scalars(const KernelContext& context, TrainingStep& step) const;
  Status update_all(KernelContext& context, States& states,
                    TrainingStep& step) const;
  Status update_rows(KernelContext& context, States& states,
                     TrainingStep& step) const;

  const DataType dtype_;
  const int num_states_;
  const double nanoseconds_;
  std::string rule_;          // as "Adam"
  std::vector<int> scalars_;  // the inputs that they are
  int gradient_ = -1;
  int indices_ = -1;  // -1: the gradient is dense
  bool option_ = false;
};

template <template <class> class Rule, class T>
class RuleKernel final : public TrainingKernel {
  using Real = std::conditional_t<kIsNarrow<T>, float, T>;
  static constexpr size_t kStates = Rule<Real>::kStates;

 public:
  explicit RuleKernel(const KernelInfo& info)
      : TrainingKernel(info, int(kStates), Rule<Real>::kCost) {}

 private:
  static constexpr int64_t kPiece = 256;

  void apply(const TrainingStep& step, int64_t begin,
             int64_t end) const override {
    const Rule<Real> rule(step.scalars.data(), option());
    run(rule, step, begin, begin, end - begin);
  }
  void apply_rows(const TrainingStep& step, int64_t begin,
                  int64_t end) const override {
    const Rule<Real> rule(step.scalars.data(), option());
    for (size_t i = 0; i < step.numbers.size(); ++i)
      if (const int64_t row = step.numbers[i]; row >= begin && row < end)
        run(rule, step, row * step.row, int64_t(i) * step.row, step.row);
  }

  static void load(const T* from, Real* to, int64_t n) {
    if constexpr (kIsNarrow<T>) {
      widen(from, to, n);
    } else {
      std::copy_n(from, n, to);
    }
  }
  static void store(const Real* from, T* to, int64_t n) {
    if constexpr (kIsNarrow<T>) {
      narrow(from, to, n);
    } else {
      std::copy_n(from, n, to);
    }
  }

  // Processes `count` elements from `at` on, with the gradient's from
  // `gradient_at` on. Works piece by piece, through arrays that the compiler
  // knows not to overlap.
  static void run(const Rule<Real>& rule, const TrainingStep& step, int64_t at,
                  int64_t gradient_at, int64_t count) {
    Real gradient[kPiece];
    Real states[kStates][kPiece];
    for (int64_t i = 0; i < count; i += kPiece) {
      const int64_t n = std::min(kPiece, count - i);
      load(static_cast<const T*>(step.gradient) + gradient_at + i, gradient, n);
      for (size_t s = 0; s < kStates; ++s)
        load(static_cast<const T*>(step.before[s]) + at + i, states[s], n);
      run_piece(rule, gradient, states, n, std::make_index_sequence<kStates>());
      for (size_t s = 0; s < kStates; ++s)
        store(states[s], static_cast<T*>(step.after[s]) + at + i, n);
    }
  }
  template <class Any, size_t... S>
  static void run_piece(const Any& rule, const Real* gradient,
                        Real (&states)[kStates][kPiece], int64_t n,
                        std::index_sequence<S...> all) {
    if constexpr (requires { rule.is_usual(); })
      if (rule.is_usual())
        return run_piece(rule.usual(), gradient, states, n, all);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      Real of[kStates] = {states[S][i]...};
      rule(gradient[i], of[S]...);
      ((states[S][i] = of[S]), ...);
    }
  }
};

}  // namespace tagflow::devices
