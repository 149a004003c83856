// TensorArray: the target of the handle of a TensorArrayV3.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "devices/kernel.h"
#include "devices/step_resources.h"
#include "graph/shape.h"

namespace tagflow::devices {

// Elements that are written once each, in any order, and read by index.
//
// A gradient array adds up all writes to one index, since the elements of the
// forward array may have been read more than once. An element without a
// gradient yet, whose forward element was written, is read as zeros.
//
// Thread-safe. Errors are InvalidArgument unless specified otherwise.
class TensorArray final : public StepObject {
 public:
  struct Options {
    std::string name;  // for messages
    DataType dtype = DataType::kInvalid;
    PartialShape element_shape;  // every element must match it
    bool dynamic_size = false;   // a write beyond the end makes it longer
    bool clear_after_read = true;
    bool identical_shapes = false;  // the first write sets all shapes
    bool is_gradient = false;
  };

  // Throws a StatusException if the memory's limit would be exceeded.
  // REQUIRES: 0 <= size <= kMaxContainerElements
  TensorArray(Options options, int64_t size, Allocator& memory);
  ~TensorArray() override;

  DataType dtype() const { return options_.dtype; }
  bool is_gradient() const { return options_.is_gradient; }
  std::string describe() const override;
  void end() override;

  Result<int64_t> size(const KernelContext& context) const;
  // The approximate bytes of `count` elements, or of all if it is negative,
  // estimated from the first of them.
  double estimated_bytes(int64_t count) const;
  // ResourceExhausted beyond kMaxContainerElements.
  Status write(const KernelContext& context, int64_t index,
               const Tensor& value);
  // Zeros if nothing was written and the element's shape is known.
  Result<Tensor> read(const KernelContext& context, int64_t index);

  // Writes values[i] to indices[i], or, if `indices` is null, to i.
  Status write_many(const KernelContext& context, const int32_t* indices,
                    std::span<const Tensor> values);
  // The elements at `indices`.
  Result<std::vector<Tensor>> read_many(const KernelContext& context,
                                        std::span<const int32_t> indices);
  // All elements; of an array that was split, those of the split.
  Result<std::vector<Tensor>> read_all(const KernelContext& context);
  // Before a write of everything: makes a dynamic array as long as `count`. The
  // array must then have exactly `count` elements if `exactly`, else at least
  // that.
  Status prepare_for(const KernelContext& context, int64_t count, bool exactly);
  // Merges `shape` into the known element shape, and returns the result.
  Result<PartialShape> agree_on_shape(const KernelContext& context,
                                      const PartialShape& shape);

  // The handle of the gradient array of that name, made at the first call. Its
  // elements have the dimensions `prepend` followed by those of this array's.
  // From then on this array keeps its size.
  Result<Tensor> gradient(const KernelContext& context,
                          const std::string& source, const Shape& prepend);

 private:
  enum Flag : uint8_t {
    kWritten = 1,
    kRead = 2,
    kCleared = 4,
    kOwned = 8,   // the value is a sum that nobody else holds
    kShape = 16,  // no value: its place holds the former dimensions
  };
  // Handles by source.
  using Gradients = std::map<std::string, Tensor, std::less<>>;

  Status check_open(const KernelContext& context) const;
  template <class... Args>
  Status fail(const KernelContext& context, fmt::format_string<Args...> format,
              Args&&... args) const {
    return context.fail("tensor array \"{}\": {}", options_.name,
                        fmt::format(format, std::forward<Args>(args)...));
  }
  // The dimensions as a vector; up to three need no memory of their own.
  static Result<Tensor> dims_tensor(const Shape& shape);
  // REQUIRES for all these: mutex_ is held.
  Status write_locked(const KernelContext& context, int64_t index,
                      const Tensor& value);
  Status add_locked(const KernelContext& context, size_t at,
                    const Tensor& value);
  Result<Tensor> read_locked(const KernelContext& context, int64_t index);
  Status grow_locked(const KernelContext& context, int64_t index);
  // Makes places for so many elements, more than there are.
  Status store_locked(const KernelContext& context, size_t stored);
  bool has_value_locked(size_t at) const;
  PartialShape shape_locked(size_t at) const;
  Status mirror_locked(const KernelContext& context, TensorArray& gradient,
                       const Shape& prepend) const;
  // Avoids recursion: gradients have gradients, as deep as a loop has run.
  static void release(std::vector<Tensor>&& values, Gradients&& gradients);

  const Options options_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  bool dynamic_size_;
  bool shape_is_open_;      // the first element sets all shapes
  bool was_added_ = false;  // two values to one index
  PartialShape element_shape_;
  int64_t size_;
  int64_t split_size_ = 0;  // of the last split, or 0
  // Elements that were accessed, and spare capacity. There are never fewer
  // flags than values.
  std::vector<Tensor> values_;
  std::vector<uint8_t> flags_;
  MemoryCharge charge_;
  Gradients gradients_;
};

}  // namespace tagflow::devices
