// Types of NumPy and of the engine.
#include "python/src/dtypes.h"

#include <string>
#include <vector>

#include "python/src/convert.h"
#include "python/src/numpy_api.h"

namespace tagflow::python {

namespace nb = nanobind;

namespace {

// ml_dtypes numbers its types when it is imported; -1 as long as it is not.
int bfloat16_number(bool may_import) {
  static int number = -1;
  if (number >= 0) return number;
  PyObject* const modules = PyImport_GetModuleDict();  // borrowed
  if (!may_import && PyDict_GetItemString(modules, "ml_dtypes") == nullptr)
    return -1;
  PyObject* const module = PyImport_ImportModule("ml_dtypes");
  if (module == nullptr) {
    PyErr_Clear();
    return -1;
  }
  PyObject* const type = PyObject_GetAttrString(module, "bfloat16");
  Py_DECREF(module);
  PyArray_Descr* descr = nullptr;
  if (type != nullptr && PyArray_DescrConverter(type, &descr) == NPY_SUCCEED)
    number = descr->type_num;
  Py_XDECREF(type);
  Py_XDECREF(reinterpret_cast<PyObject*>(descr));
  PyErr_Clear();
  return number;
}

}  // namespace

DataType dtype_of_number(int number) {
  switch (number) {
    case NPY_FLOAT:
      return DataType::kFloat;
    case NPY_DOUBLE:
      return DataType::kDouble;
    case NPY_HALF:
      return DataType::kHalf;
    case NPY_BOOL:
      return DataType::kBool;
    case NPY_BYTE:
      return DataType::kInt8;
    case NPY_SHORT:
      return DataType::kInt16;
    case NPY_INT:
      return DataType::kInt32;
    case NPY_LONG:
    case NPY_LONGLONG:
      return DataType::kInt64;
    case NPY_UBYTE:
      return DataType::kUInt8;
    case NPY_USHORT:
      return DataType::kUInt16;
    case NPY_UINT:
      return DataType::kUInt32;
    case NPY_ULONG:
    case NPY_ULONGLONG:
      return DataType::kUInt64;
    case NPY_CFLOAT:
      return DataType::kComplex64;
    case NPY_CDOUBLE:
      return DataType::kComplex128;
    case NPY_OBJECT:
    case NPY_STRING:
    case NPY_UNICODE:
      return DataType::kString;
    default:
      break;
  }
  if (number == kStringDTypeNumber) return DataType::kString;
  if (number >= NPY_USERDEF && number == bfloat16_number(false))
    return DataType::kBFloat16;
  return DataType::kInvalid;
}

DataType plain_twin(DataType dtype) {
  switch (dtype) {
    case DataType::kQInt8:
      return DataType::kInt8;
    case DataType::kQUInt8:
      return DataType::kUInt8;
    case DataType::kQInt16:
      return DataType::kInt16;
    case DataType::kQUInt16:
      return DataType::kUInt16;
    case DataType::kQInt32:
      return DataType::kInt32;
    default:
      return dtype;
  }
}

int number_of(DataType dtype) {
  switch (plain_twin(dtype)) {
    case DataType::kFloat:
      return NPY_FLOAT;
    case DataType::kDouble:
      return NPY_DOUBLE;
    case DataType::kHalf:
      return NPY_HALF;
    case DataType::kBool:
      return NPY_BOOL;
    case DataType::kInt8:
      return NPY_INT8;
    case DataType::kInt16:
      return NPY_INT16;
    case DataType::kInt32:
      return NPY_INT32;
    case DataType::kInt64:
      return NPY_INT64;
    case DataType::kUInt8:
      return NPY_UINT8;
    case DataType::kUInt16:
      return NPY_UINT16;
    case DataType::kUInt32:
      return NPY_UINT32;
    case DataType::kUInt64:
      return NPY_UINT64;
    case DataType::kComplex64:
      return NPY_CFLOAT;
    case DataType::kComplex128:
      return NPY_CDOUBLE;
    case DataType::kString:
      return NPY_OBJECT;
    case DataType::kBFloat16:
      return bfloat16_number(true);
    default:
      return -1;
  }
}

PyArray_Descr* descr_of(DataType dtype) {
  const int number = number_of(dtype);
  if (number >= 0) return PyArray_DescrFromType(number);
  if (dtype == DataType::kBFloat16) {
    PyErr_SetString(PyExc_ImportError,
                    "NumPy has bfloat16 by the package ml_dtypes only: "
                    "pip install ml_dtypes");
  } else {
    PyErr_Format(PyExc_TypeError, "NumPy has no type for %s",
                 dtype_name(dtype).c_str());
  }
  return nullptr;
}

PyObject* dtype_object(DataType dtype) noexcept try {
  return reinterpret_cast<PyObject*>(descr_of(dtype));
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_MemoryError, failure.what());
  return nullptr;
}

DataType to_dtype(PyObject* object) noexcept try {
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) return DataType::kInvalid;
    const auto named = dtype_from_name({text, size_t(size)});
    if (named.ok()) return *named;
  }
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(object, &descr) != NPY_SUCCEED)
    return DataType::kInvalid;
  const DataType dtype = dtype_of_number(descr->type_num);
  if (dtype == DataType::kInvalid)
    PyErr_Format(PyExc_TypeError, "tagflow has no type for %R", descr);
  Py_DECREF(descr);
  return dtype;
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_MemoryError, failure.what());
  return DataType::kInvalid;
}

nb::object shape_object(const PartialShape& shape) {
  if (!shape.has_rank()) return nb::none();
  const nb::object dims =
      nb::steal<nb::object>(PyTuple_New(Py_ssize_t(shape.rank())));
  if (!dims.is_valid()) throw nb::python_error();
  for (int i = 0; i < shape.rank(); ++i)
    PyTuple_SET_ITEM(dims.ptr(), i,
                     (shape.dim_known(i) ? nb::object(nb::int_(shape.dim(i)))
                                         : nb::object(nb::none()))
                         .release()
                         .ptr());
  return dims;
}

PartialShape to_partial_shape(nb::handle object) {
  if (object.is_none()) return {};
  std::vector<int64_t> dims;
  const auto add = [&](nb::handle dim) {
    dims.push_back(dim.is_none() ? PartialShape::kUnknown
                                 : nb::cast<int64_t>(dim));
  };
  if (nb::isinstance<nb::int_>(object)) {
    add(object);
  } else {
    for (const nb::handle dim : object) add(dim);
  }
  auto shape = PartialShape::make(dims);
  if (!shape.ok())
    throw nb::value_error(std::string(shape.status().message()).c_str());
  return *std::move(shape);
}

}  // namespace tagflow::python
