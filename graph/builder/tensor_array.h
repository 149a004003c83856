// TensorArray: tensors of one type, each written once and read by index, in any
// order, to collect or split values in a loop.
//
//   TensorArray squares(s, n, DataType::kInt32);
//   const auto last = while_loop(
//       s, [&](const Scope& in, const auto& v) { return less(in, v.first, n);
//       },
//       [](const Scope& in, auto v) {
//         v.second = v.second.write(in, v.first, square(in, v.first));
//         v.first = add(in, v.first, 1);
//         return v;
//       },
//       std::pair(constant(s, 0), squares));
//   Output all = last.second.stack(s);
//
// It consists of its handle and a *flow*, which orders operations. A write
// returns the array with a new flow; code that uses the new flow sees the
// write. As a variable of a loop (structured_control_flow.h) it is the flow
// that changes.
#pragma once

#include <memory>
#include <string>

#include "graph/builder/scope.h"

namespace tagflow::graph {

struct TensorArrayOptions {
  // Shape of every element, as far as it is known. With `infer_shape`, writes
  // during graph construction refine it.
  PartialShape element_shape = {};
  bool infer_shape = true;
  // A write beyond the end extends the array.
  bool dynamic_size = false;
  // An element can be read once; then its memory is freed.
  bool clear_after_read = true;
  std::string name = {};  // for messages; if empty, the node's name
};

// A value: copies refer to the same array. It lives as long as the step. On an
// error the scope keeps it, and results are invalid.
class TensorArray {
 public:
  TensorArray() = default;  // invalid
  // Has no elements at first. `size` is an int32 scalar.
  TensorArray(const Scope& s, const Input& size, DataType dtype,
              TensorArrayOptions options = {});

  bool valid() const { return array_ != nullptr; }
  // kInvalid, and unknown rank, if it is invalid.
  DataType dtype() const;
  PartialShape element_shape() const;

  // The index must not have been written yet; a literal takes the array's type.
  TensorArray write(const Scope& s, const Input& index,
                    const Input& value) const;
  // Waits only for writes that this flow has seen. Once per index if
  // clear_after_read is set.
  Output read(const Scope& s, const Input& index) const;
  // All elements, of one shape, along a new first dimension. If there are no
  // elements, the element shape must be known.
  Output stack(const Scope& s) const;
  // The elements with these indices, an int32 vector.
  Output gather(const Scope& s, const Input& indices) const;
  // All elements, concatenated along their first dimension, whose size may
  // differ unless infer_shape is set.
  Output concat(const Scope& s) const;
  // Writes value[i] to index i, for all i.
  TensorArray unstack(const Scope& s, const Input& value) const;
  // Writes value[i] to indices[i].
  TensorArray scatter(const Scope& s, const Input& indices,
                      const Input& value) const;
  // Writes pieces of `value`, of these lengths (an integer vector) along its
  // first dimension; the lengths may differ unless infer_shape is set.
  TensorArray split(const Scope& s, const Input& value,
                    const Input& lengths) const;
  // An int32 scalar.
  Output size(const Scope& s) const;
  // An operation that frees the memory before the step ends, after all
  // operations that this flow has seen.
  Output close(const Scope& s) const;

  Output handle() const;
  Output flow() const { return flow_; }
  TensorArray with_flow(Output flow) const;

 private:
  // The data that all copies share.
  struct Array {
    Output handle;
    DataType dtype = DataType::kInvalid;
    PartialShape element_shape;
    bool infer_shape = true;
  };

  bool usable(const Scope& s, const char* what) const;
  // Which part of a value is an element: all of it, a row, or some rows.
  enum class Element : uint8_t { kWhole, kRow, kRows };
  // The value as a tensor of the array's type; invalid if it does not match.
  Output checked(const Scope& s, const char* what, const Input& value,
                 Element element) const;
  bool learn(const Scope& s, const char* what, const PartialShape& shape) const;

  std::shared_ptr<Array> array_;
  Output flow_;
};

}  // namespace tagflow::graph
