// tagflow.Tensor, the class of Python: a value of the engine that never
// changes.
#pragma once

#include <Python.h>

#include "graph/tensor.h"

namespace tagflow::python {

// The tensor in an object of that class; null if it is another object. Lives as
// long as the object.
const Tensor* tensor_of(PyObject* object);
// A new object: a new reference. Throws nanobind's exceptions.
PyObject* value_object(Tensor tensor);

}  // namespace tagflow::python
