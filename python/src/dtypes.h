// Types of NumPy by their numbers.
#pragma once

#include "graph/dtype.h"
#include "python/src/numpy_api.h"

namespace tagflow::python {

// NumPy's number of StringDType, for which headers before 2.0 have no name.
inline constexpr int kStringDTypeNumber = 2056;

// The engine's type for a number of NumPy's, which for objects and texts is
// kString; kInvalid if it has none.
DataType dtype_of_number(int number);
// NumPy's number; -1 if it has none. Quantised types are integers there.
int number_of(DataType dtype);
// A new reference, or null with an error of Python.
PyArray_Descr* descr_of(DataType dtype);
// The integer with the same bytes as a quantised type; other types themselves.
DataType plain_twin(DataType dtype);

}  // namespace tagflow::python
