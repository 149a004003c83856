// Tensors as values of Python.
#include <cstring>
#include <memory>
#include <string>

#include "python/src/convert.h"
#include "python/src/dtypes.h"
#include "python/src/numpy_api.h"
#include "python/src/value.h"

namespace tagflow::python {
namespace {

// Below this, a copy is cheaper than an object that keeps the tensor.
constexpr size_t kLeastViewed = 1024;
constexpr char kTensorCapsule[] = "tagflow tensor";

struct Dims {
  explicit Dims(const Tensor& tensor) : rank(tensor.rank()) {
    for (int i = 0; i < rank && i < NPY_MAXDIMS; ++i) at[i] = tensor.dim(i);
  }
  int rank;
  npy_intp at[NPY_MAXDIMS];
};

bool check_rank(const Tensor& tensor) {
  if (tensor.rank() <= NPY_MAXDIMS) return true;
  PyErr_Format(PyExc_ValueError, "an array has at most %d dimensions, not %d",
               NPY_MAXDIMS, tensor.rank());
  return false;
}

void drop_tensor(PyObject* capsule) {
  delete static_cast<Tensor*>(PyCapsule_GetPointer(capsule, kTensorCapsule));
}

PyObject* texts(const Tensor& tensor) {
  const auto* const elements = tensor.data<std::string>();
  if (tensor.is_scalar())
    return PyBytes_FromStringAndSize(elements->data(),
                                     Py_ssize_t(elements->size()));
  Dims dims(tensor);
  PyObject* const array = PyArray_SimpleNew(dims.rank, dims.at, NPY_OBJECT);
  if (array == nullptr) return nullptr;
  auto* const objects = static_cast<PyObject**>(
      PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)));
  const int64_t count = tensor.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    PyObject* const bytes = PyBytes_FromStringAndSize(
        elements[i].data(), Py_ssize_t(elements[i].size()));
    if (bytes == nullptr) {
      Py_DECREF(array);
      return nullptr;
    }
    PyObject* const before = objects[i];
    objects[i] = bytes;
    Py_XDECREF(before);
  }
  return array;
}

PyObject* copy(const Tensor& tensor, PyArray_Descr* descr) {
  Dims dims(tensor);
  PyObject* const array = PyArray_NewFromDescr(
      &PyArray_Type, descr, dims.rank, dims.at, nullptr, nullptr, 0, nullptr);
  if (array != nullptr)
    std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)),
                tensor.raw(), tensor.bytes());
  return array;
}

PyObject* view(Tensor tensor, PyArray_Descr* descr, int flags) {
  Dims dims(tensor);
  auto kept = std::make_unique<Tensor>(std::move(tensor));
  PyObject* const capsule =
      PyCapsule_New(kept.get(), kTensorCapsule, &drop_tensor);
  if (capsule == nullptr) {
    Py_DECREF(descr);
    return nullptr;
  }
  Tensor* const owned = kept.release();
  PyObject* const array =
      PyArray_NewFromDescr(&PyArray_Type, descr, dims.rank, dims.at, nullptr,
                           owned->mutable_raw(), flags, nullptr);
  if (array == nullptr) {
    Py_DECREF(capsule);
    return nullptr;
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), capsule) <
      0) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

PyObject* convert(Tensor&& tensor) {
  const DataType dtype = tensor.dtype();
  if (!is_plain(dtype) && dtype != DataType::kString)
    return value_object(std::move(tensor));
  if (!check_rank(tensor)) return nullptr;
  if (dtype == DataType::kString) return texts(tensor);
  PyArray_Descr* const descr = descr_of(dtype);
  if (descr == nullptr) return nullptr;
  if (tensor.is_scalar()) {
    PyObject* const scalar =
        PyArray_Scalar(tensor.mutable_raw(), descr, nullptr);
    Py_DECREF(descr);
    return scalar;
  }
  if (tensor.bytes() < kLeastViewed || !tensor.unique())
    return copy(tensor, descr);
  return view(std::move(tensor), descr, NPY_ARRAY_CARRAY);
}

}  // namespace

bool is_view(PyObject* base) noexcept {
  return PyCapsule_IsValid(base, kTensorCapsule) != 0;
}

PyObject* to_python(Tensor tensor) noexcept try {
  return convert(std::move(tensor));
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_MemoryError, failure.what());
  return nullptr;
}

PyObject* view_of(const Tensor& tensor) noexcept try {
  if (!check_rank(tensor)) return nullptr;
  if (tensor.dtype() == DataType::kString) {
    PyObject* const array = texts(tensor);
    if (array == nullptr || !tensor.is_scalar()) return array;
    PyArray_Descr* const descr = PyArray_DescrFromType(NPY_OBJECT);
    PyObject* const boxed = PyArray_FromAny(array, descr, 0, 0, 0, nullptr);
    Py_DECREF(array);
    return boxed;
  }
  PyArray_Descr* const descr = descr_of(tensor.dtype());
  if (descr == nullptr) return nullptr;
  return view(tensor, descr, NPY_ARRAY_CARRAY_RO);
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_MemoryError, failure.what());
  return nullptr;
}

}  // namespace tagflow::python
