// Values of Python as tensors, and back.
//
// All functions REQUIRE that the thread holds the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace tagflow::python {

// Note [Whose memory]
// A tensor never changes, an array may be written by anyone who has it. So:
//
//   - What is fed is copied, except a tagflow.Tensor, and a large array that
//     nobody may write (`flags.writeable` is false, of it and of all arrays
//     that it is a view of) and that begins at 64 bytes: these are lent, see
//     lend.h.
//   - What is fetched is a new array, which views the tensor's memory and keeps
//     it if nobody else has it: a large result is not copied. Otherwise, as for
//     the value of a variable, it is a copy. In any case it may be written.

// A tensor of an array, a scalar, a text, or nested lists of these. `wanted` is
// the type that it shall have; kInvalid: that of NumPy. A value is converted if
// that loses nothing but precision: int64 becomes int32 if it fits, float64
// float32, int64 float32, but floats never become integers. `name` is that of
// the feed, for messages. False: Python's error indicator is set.
bool to_tensor(PyObject* value, DataType wanted, std::string_view name,
               Tensor& tensor) noexcept;

// A new reference: an array; for a scalar, a scalar of NumPy; for texts, an
// array of `bytes`, or `bytes`. Handles and variants give a tagflow.Tensor.
// Null: Python's error indicator is set.
PyObject* to_python(Tensor tensor) noexcept;

// Whether the object is what has the memory of such arrays.
bool is_view(PyObject* base) noexcept;

// An array that views the tensor and cannot be written, or, for texts, a copy.
// A new reference, or null with an error.
PyObject* view_of(const Tensor& tensor) noexcept;

// NumPy's type: a new reference, or null with an error.
PyObject* dtype_object(DataType dtype) noexcept;
// The type that a dtype, a type of Python or NumPy, or a name such as
// "bfloat16" stands for; kInvalid: Python's error indicator is set.
DataType to_dtype(PyObject* object) noexcept;

// A tuple of ints; None stands for an unknown dimension, and for an unknown
// rank.
nanobind::object shape_object(const PartialShape& shape);
// The shape that a tuple, a list, an int or None stands for; throws.
PartialShape to_partial_shape(nanobind::handle object);

}  // namespace tagflow::python
