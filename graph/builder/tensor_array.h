// TensorArray: tensors of one type, written once each and read by index, in
// any order: what a loop collects, or takes apart.
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
// It is its handle and a *flow* that orders what is done with it. A write
// returns the array with a new flow; who has that one sees the write. As a
// variable of a loop (structured_control_flow.h) the flow goes around.
#pragma once

#include <memory>
#include <string>

#include "graph/builder/scope.h"

namespace tagflow::graph {

struct TensorArrayOptions {
  // Of every element, as far as it is known. With `infer_shape` the shapes
  // written while the graph is built say more.
  PartialShape element_shape = {};
  bool infer_shape = true;
  // A write beyond the end makes it longer.
  bool dynamic_size = false;
  // An element can be read once; its memory is given back.
  bool clear_after_read = true;
  std::string name = {};  // of messages; the node's where it is empty
};

// A value: copies are of the same array. It lives as long as the step. On an
// error the scope keeps it, and results are invalid.
class TensorArray {
 public:
  TensorArray() = default;  // invalid
  // Without elements yet. `size` is an int32 scalar.
  TensorArray(const Scope& s, const Input& size, DataType dtype,
              TensorArrayOptions options = {});

  bool valid() const { return array_ != nullptr; }
  // kInvalid and of unknown rank where it is invalid.
  DataType dtype() const;
  PartialShape element_shape() const;

  // An index that was not written yet; a literal takes the array's type.
  TensorArray write(const Scope& s, const Input& index,
                    const Input& value) const;
  // Waits for nothing but what this flow has seen. Once per index where
  // clear_after_read.
  Output read(const Scope& s, const Input& index) const;
  // All elements, of one shape, along a new first dimension. Of no elements,
  // the element shape must be known.
  Output stack(const Scope& s) const;
  // Those of the indices, an int32 vector.
  Output gather(const Scope& s, const Input& indices) const;
  // All elements along their first dimension, in which they may differ where
  // not infer_shape.
  Output concat(const Scope& s) const;
  // Writes value[i] to index i, for all there are.
  TensorArray unstack(const Scope& s, const Input& value) const;
  // Writes value[i] to indices[i].
  TensorArray scatter(const Scope& s, const Input& indices,
                      const Input& value) const;
  // Writes pieces of `value`, of these lengths (an integer vector) along its
  // first dimension; they may differ where not infer_shape.
  TensorArray split(const Scope& s, const Input& value,
                    const Input& lengths) const;
  // An int32 scalar.
  Output size(const Scope& s) const;
  // An operation that gives the memory back before the step ends, after what
  // this flow has seen.
  Output close(const Scope& s) const;

  Output handle() const;
  Output flow() const { return flow_; }
  TensorArray with_flow(Output flow) const;

 private:
  // What all copies know of the array.
  struct Array {
    Output handle;
    DataType dtype = DataType::kInvalid;
    PartialShape element_shape;
    bool infer_shape = true;
  };

  bool usable(const Scope& s, const char* what) const;
  // What of a value is an element: all of it, a row, or some rows.
  enum class Element : uint8_t { kWhole, kRow, kRows };
  // The value as a tensor of the array's type; invalid where it does not fit.
  Output checked(const Scope& s, const char* what, const Input& value,
                 Element element) const;
  bool learn(const Scope& s, const char* what, const PartialShape& shape) const;

  std::shared_ptr<Array> array_;
  Output flow_;
};

}  // namespace tagflow::graph
