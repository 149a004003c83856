// Kernels that apply one function to each element, or to each pair.
//
// An element-wise op is a struct:
//
//   template <class T>
//   struct Add : Elementwise<T> {
//     static T apply(T a, T b) { return wrap(a) + wrap(b); }
//   };
//
// with In and Out, the element types (from Elementwise), apply(), and
// optionally, if the defaults do not fit:
//   static constexpr double kCost    nanoseconds of one element, if vectorised
//   static constexpr const char* kRefusal, static bool refuses(In)
//                                    why and which second operands are errors
//   static void apply_row(...)       a whole row, if a loop over apply() is
//                                    not the best; see run_row()
//   using Exchanged                  a binary op that gives the same for
//                                    exchanged operands, whose rows serve both
// UnaryKernel<Op> and BinaryKernel<Op> make a kernel of it. Both inputs as
// inline scalars, the case of a loop counter, take a path without shapes or
// allocation. Everything else goes through the base classes, which see only
// bytes and a function for one row, so that an instantiation is small.
#pragma once

#include <type_traits>

#include "devices/kernel.h"

namespace tagflow::devices {

// The types of an op's elements.
template <class T, class R = T>
struct Elementwise {
  using In = T;
  using Out = R;
  static constexpr double kCost = 0.3;
};

// What the base classes need from an op.
struct UnaryLoop {
  // z[i] = f(x[i]) for i < n. z may be x.
  void (*row)(const void* x, void* z, int64_t n);
  size_t in_size, out_size;
  double cost;  // of one element, in nanoseconds
};

struct BinaryLoop {
  // z[i] = f(x[i], y[i]) for i < n; an operand that does not move is read at
  // its first element only. z may be x or y if that moves.
  void (*row)(const void* x, bool x_moves, const void* y, bool y_moves, void* z,
              int64_t n);
  // The index of the first of n second operands that is invalid, or -1. Null
  // if all are valid.
  int64_t (*find_refused)(const void* y, int64_t n);
  const char* refusal;  // the message for it
  size_t in_size, out_size;
  double cost;
};

// Whether the node's first output may have so many elements, at `cost`
// nanoseconds each, that an estimate in every run pays.
bool may_take_long(const KernelInfo& info, double cost);

// Whether both have the same rank and dimensions.
bool same_dims(const Tensor& x, const Tensor& y);

// For AddN: InvalidArgument if its inputs have different shapes.
Status check_addends(const KernelContext& context);

// Calls body(begin, end) on parts of [0, total), whose units have
// `unit_elements`; on everything at once if that is little.
template <class Body>
void shard(const KernelContext& context, int64_t total, int64_t unit_elements,
           double element_cost, const Body& body) {
  constexpr int64_t kSharded = 32 * 1024;  // elements
  if (total * unit_elements < kSharded) {
    body(0, total);
  } else {
    context.parallel_for(total, double(unit_elements) * element_cost, body);
  }
}

// One row, as UnaryLoop::row says: by Op::apply_row(x, z, n) or a loop. All
// that the loop calls is inlined, so that it is vectorised.
template <class Op>
[[gnu::flatten]] void run_row(const typename Op::In* x, typename Op::Out* z,
                              int64_t n) {
  if constexpr (requires { Op::apply_row(x, z, n); }) {
    Op::apply_row(x, z, n);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = Op::apply(x[i]);
  }
}

// One row, as BinaryLoop::row says: by Op::apply_row(x, x_moves, y, y_moves, z,
// n) or a loop.
template <class Op>
[[gnu::flatten]] void run_row(const typename Op::In* x, bool x_moves,
                              const typename Op::In* y, bool y_moves,
                              typename Op::Out* z, int64_t n) {
  if constexpr (requires { Op::apply_row(x, x_moves, y, y_moves, z, n); }) {
    Op::apply_row(x, x_moves, y, y_moves, z, n);
  } else if (x_moves && y_moves) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = Op::apply(x[i], y[i]);
  } else if (x_moves) {
    const typename Op::In fixed = *y;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = Op::apply(x[i], fixed);
  } else {
    // If neither moves there is a single element.
    const typename Op::In fixed = *x;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = Op::apply(fixed, y[i]);
  }
}

class UnaryBase : public Kernel {
 public:
  double cost(const KernelContext& context) const final;
  bool may_be_expensive() const final { return may_be_expensive_; }
  bool may_be_expensive_on_small_inputs() const final { return false; }
  const UnaryLoop& loop() const { return loop_; }

 protected:
  UnaryBase(const KernelInfo& info, const UnaryLoop& loop)
      : loop_(loop), may_be_expensive_(may_take_long(info, loop.cost)) {}
  Status compute_tensor(KernelContext& context) const;

 private:
  UnaryLoop loop_;
  bool may_be_expensive_;
};

class BinaryBase : public Kernel {
 public:
  double cost(const KernelContext& context) const final;
  bool may_be_expensive() const final { return may_be_expensive_; }
  bool may_be_expensive_on_small_inputs() const final { return false; }
  const BinaryLoop& loop() const { return loop_; }
  // Whether a single element may be broadcast to the other operand.
  virtual bool broadcasts() const { return true; }

 protected:
  BinaryBase(const KernelInfo& info, const BinaryLoop& loop)
      : loop_(loop), may_be_expensive_(may_take_long(info, loop.cost)) {}
  // For inputs that may have to be broadcast.
  Status compute_tensors(KernelContext& context) const;
  // The error for an invalid second operand.
  Status refuse(KernelContext& context, int64_t index) const;

 private:
  Status check(KernelContext& context, const Tensor& y) const;
  Status compute_flat(KernelContext& context, bool x_moves, bool y_moves) const;
  Status compute_broadcast(KernelContext& context) const;

  BinaryLoop loop_;
  bool may_be_expensive_;
};

template <class Op>
class UnaryKernel final : public UnaryBase {
 public:
  using In = typename Op::In;
  using Out = typename Op::Out;

  explicit UnaryKernel(const KernelInfo& info)
      : UnaryBase(info, {&row, sizeof(In), sizeof(Out), Op::kCost}) {}

  Status compute(KernelContext& context) const override {
    context.output(0).reset();
    if (scalar(context.inputs().data(), context.output(0))) return {};
    return compute_tensor(context);
  }
  ScalarFunction scalar_function() const override { return &scalar; }

 private:
  static bool scalar(const Tensor* inputs, Tensor& output) {
    if (!inputs[0].is_inline_scalar()) return false;
    new (&output)
        Tensor(Tensor::scalar<Out>(Op::apply(*inputs[0].inline_data<In>())));
    return true;
  }
  static void row(const void* x, void* z, int64_t n) {
    run_row<Op>(static_cast<const In*>(x), static_cast<Out*>(z), n);
  }
};

template <class Op>
class BinaryKernel : public BinaryBase {
 public:
  using In = typename Op::In;
  using Out = typename Op::Out;

  explicit BinaryKernel(const KernelInfo& info)
      : BinaryBase(info, make_loop()) {}

  Status compute(KernelContext& context) const override {
    if constexpr (kPlain) {
      context.output(0).reset();
      if (scalar(context.inputs().data(), context.output(0))) return {};
    }
    return compute_tensors(context);
  }
  ScalarFunction scalar_function() const override {
    if constexpr (kPlain) return &scalar;
    return nullptr;
  }

 private:
  static constexpr bool kPlain = std::is_trivially_copyable_v<In>;
  static constexpr bool kRefuses = requires(In y) { Op::refuses(y); };
  template <class>
  friend class BinaryKernel;  // calls row() of the exchanged op

  static bool scalar(const Tensor* inputs, Tensor& output) {
    if (!inputs[0].is_inline_scalar() || !inputs[1].is_inline_scalar())
      return false;
    const In b = *inputs[1].inline_data<In>();
    if constexpr (kRefuses) {
      if (Op::refuses(b)) return false;
    }
    new (&output)
        Tensor(Tensor::scalar<Out>(Op::apply(*inputs[0].inline_data<In>(), b)));
    return true;
  }

  static BinaryLoop make_loop() {
    BinaryLoop loop{&row, nullptr, nullptr, sizeof(In), sizeof(Out), Op::kCost};
    if constexpr (kRefuses) {
      loop.find_refused = &find_refused;
      loop.refusal = Op::kRefusal;
    }
    return loop;
  }

  static int64_t find_refused(const void* y, int64_t n) {
    const auto* b = static_cast<const In*>(y);
    for (int64_t i = 0; i < n; ++i)
      if (Op::refuses(b[i])) return i;
    return -1;
  }

  static void row(const void* x, bool x_moves, const void* y, bool y_moves,
                  void* z, int64_t n) {
    if constexpr (requires { typename Op::Exchanged; }) {
      BinaryKernel<typename Op::Exchanged>::row(y, y_moves, x, x_moves, z, n);
    } else {
      run_row<Op>(static_cast<const In*>(x), x_moves, static_cast<const In*>(y),
                  y_moves, static_cast<Out*>(z), n);
    }
  }
};

// A BinaryKernel without broadcasting: the shapes must be the same.
template <class Op>
class AlikeKernel final : public BinaryKernel<Op> {
 public:
  using BinaryKernel<Op>::BinaryKernel;

  Status compute(KernelContext& context) const override {
    if (!same_dims(context.input(0), context.input(1)))
      return context.fail("the inputs must have one shape, not {} and {}",
                          context.input(0).describe(),
                          context.input(1).describe());
    return BinaryKernel<Op>::compute(context);
  }
  bool broadcasts() const override { return false; }
};

}  // namespace tagflow::devices
