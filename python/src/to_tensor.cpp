// Values of Python as tensors.
#include <cstring>
#include <string>

#include "python/src/convert.h"
#include "python/src/dtypes.h"
#include "python/src/error.h"
#include "python/src/lend.h"
#include "python/src/numpy_api.h"
#include "python/src/value.h"

namespace tagflow::python {
namespace {

// A reference that is dropped at the end.
class Owned {
 public:
  explicit Owned(PyObject* object) : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  PyArrayObject* array() const {
    return reinterpret_cast<PyArrayObject*>(object_);
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* const object_;
};

std::string prefix(std::string_view name) {
  return name.empty() ? std::string("[convert] ")
                      : fmt::format("[feed] \"{}\": ", name);
}

std::string text_of(PyObject* object) {
  const Owned text(PyObject_Str(object));
  const char* const bytes = text ? text_of_str(text.get()) : nullptr;
  PyErr_Clear();
  return bytes == nullptr ? "?" : bytes;
}

bool fail(std::string_view name, const std::string& what) {
  set_error(error(Code::kInvalidArgument, "{}{}", prefix(name), what));
  return false;
}

bool fail(const Status& status) {
  set_error(status);
  return false;
}

Shape shape_of(PyArrayObject* array) {
  Shape shape;
  const int rank = PyArray_NDIM(array);
  for (int i = 0; i < rank; ++i) shape.add_dim(PyArray_DIM(array, i));
  return shape;
}

// --- Texts ------------------------------------------------------------------

// The bytes of one element; a str is UTF-8.
bool text_element(PyObject* element, std::string_view name, std::string& text) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(element)) {
    text.assign(PyBytes_AS_STRING(element), size_t(PyBytes_GET_SIZE(element)));
    return true;
  }
  if (PyUnicode_Check(element)) {
    const char* const bytes = PyUnicode_AsUTF8AndSize(element, &size);
    if (bytes == nullptr) return false;
    text.assign(bytes, size_t(size));
    return true;
  }
  return fail(
      name,
      fmt::format("an element of {} is not bytes or str",
                  text_of(reinterpret_cast<PyObject*>(Py_TYPE(element)))));
}

// Of an array of objects, bytes or str of any kind.
bool texts(PyArrayObject* array, std::string_view name, Tensor& tensor) {
  PyArray_Descr* const descr = PyArray_DescrFromType(NPY_OBJECT);
  const Owned objects(PyArray_FromArray(array, descr, NPY_ARRAY_CARRAY_RO));
  if (!objects) return false;
  auto made = Tensor::allocate(DataType::kString, shape_of(objects.array()));
  if (!made.ok()) return fail(made.status());
  auto* const elements =
      static_cast<PyObject* const*>(PyArray_DATA(objects.array()));
  const int64_t count = made->num_elements();
  for (int64_t i = 0; i < count; ++i)
    if (!text_element(elements[i], name, made->mutable_data<std::string>()[i]))
      return false;
  tensor = *std::move(made);
  return true;
}

// --- Numbers ----------------------------------------------------------------

bool is_whole(int number) {
  return PyTypeNum_ISINTEGER(number) || PyTypeNum_ISBOOL(number);
}

// Whether all elements are the same after the cast.
bool is_equal(PyObject* a, PyObject* b) {
  const Owned equal(PyObject_RichCompare(a, b, Py_EQ));
  if (!equal) return false;
  const Owned all(PyObject_CallMethod(equal.get(), "all", nullptr));
  return all && PyObject_IsTrue(all.get()) == 1;
}

// A new reference to an array of `wanted`, row-major and in the machine's
// order of bytes; null with an error.
PyObject* cast(PyArrayObject* array, DataType wanted, std::string_view name) {
  PyArray_Descr* const descr = descr_of(wanted);
  if (descr == nullptr) return nullptr;
  const int from = PyArray_TYPE(array);
  const int to = descr->type_num;
  const bool keeps_kind =
      PyArray_SIZE(array) == 0 || from == to ||
      (dtype_of_number(from) != DataType::kString &&
       (PyArray_CanCastTypeTo(PyArray_DESCR(array), descr,
                              NPY_SAME_KIND_CASTING) ||
        // To NumPy, a type of a package has no kind, and -1 may be unsigned.
        wanted == DataType::kBFloat16 || (is_whole(from) && is_whole(to))));
  if (!keeps_kind) {
    const std::string have =
        text_of(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
    Py_DECREF(descr);
    fail(name, fmt::format("{} is not converted to {}: use .astype() if that "
                           "is meant",
                           have, dtype_name(wanted)));
    return nullptr;
  }
  PyObject* const converted =  // takes the reference to the descr
      PyArray_FromArray(array, descr,
                        NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
  if (converted == nullptr || from == to) return converted;
  if (is_whole(from) && is_whole(to) &&
      !is_equal(reinterpret_cast<PyObject*>(array), converted)) {
    Py_DECREF(converted);
    if (PyErr_Occurred() == nullptr)
      fail(name, fmt::format("a value is out of the range of {}",
                             dtype_name(wanted)));
    return nullptr;
  }
  return converted;
}

// Whether nobody can write to the array's memory: neither this array nor one
// that it is a view of, nor what has the memory, if that is not the last array.
bool never_changes(PyArrayObject* array) {
  for (;;) {
    if (PyArray_ISWRITEABLE(array)) return false;
    PyObject* const base = PyArray_BASE(array);
    if (base == nullptr) return true;
    if (!PyArray_Check(base)) return PyBytes_Check(base) || is_view(base);
    array = reinterpret_cast<PyArrayObject*>(base);
  }
}

// Of a row-major array whose elements are those of `dtype`.
bool copy_array(PyArrayObject* array, DataType dtype, Tensor& tensor) {
  const Shape shape = shape_of(array);
  const void* const data = PyArray_DATA(array);
  const size_t bytes = size_t(PyArray_NBYTES(array));
  if (can_lend(data, bytes, dtype) && never_changes(array)) {
    auto lent = lend(reinterpret_cast<PyObject*>(array), data, dtype, shape);
    if (!lent.ok()) return fail(lent.status());
    tensor = *std::move(lent);
    return true;
  }
  auto made = Tensor::allocate(dtype, shape);
  if (!made.ok()) return fail(made.status());
  std::memcpy(made->mutable_raw(), data, bytes);
  tensor = *std::move(made);
  return true;
}

bool from_array(PyArrayObject* array, DataType wanted, std::string_view name,
                Tensor& tensor) {
  const DataType own = dtype_of_number(PyArray_TYPE(array));
  if (wanted == DataType::kInvalid) wanted = own;
  if (own == plain_twin(wanted) && own != DataType::kString &&
      own != DataType::kInvalid && PyArray_ISCARRAY_RO(array))
    return copy_array(array, wanted, tensor);
  if (wanted == DataType::kInvalid)
    return fail(
        name, fmt::format(
                  "there is no type for an array of {}",
                  text_of(reinterpret_cast<PyObject*>(PyArray_DESCR(array)))));
  if (wanted == DataType::kString) {
    if (own == DataType::kString) return texts(array, name, tensor);
    return fail(name, "it is a text, so numbers do not fit");
  }
  const Owned converted(cast(array, wanted, name));
  return converted && copy_array(converted.array(), wanted, tensor);
}

// --- Scalars of Python, without an array ------------------------------------

// False: none of the quick cases, and nothing is set.
bool quick_scalar(PyObject* value, DataType wanted, Tensor& tensor) {
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    if (wanted == DataType::kFloat) {
      tensor = Tensor::scalar(float(number));
    } else if (wanted == DataType::kDouble) {
      tensor = Tensor::scalar(number);
    } else {
      return false;
    }
    return true;
  }
  if (PyBool_Check(value)) {
    if (wanted != DataType::kBool) return false;
    tensor = Tensor::scalar(value == Py_True);
    return true;
  }
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) return false;
  if (wanted == DataType::kInt64) {
    tensor = Tensor::scalar(int64_t(number));
  } else if (wanted == DataType::kInt32 && number == int32_t(number)) {
    tensor = Tensor::scalar(int32_t(number));
  } else if (wanted == DataType::kFloat) {
    tensor = Tensor::scalar(float(number));
  } else if (wanted == DataType::kDouble) {
    tensor = Tensor::scalar(double(number));
  } else {
    return false;
  }
  return true;
}

bool convert(PyObject* value, DataType wanted, std::string_view name,
             Tensor& tensor) {
  if (PyArray_Check(value))
    return from_array(reinterpret_cast<PyArrayObject*>(value), wanted, name,
                      tensor);
  if (quick_scalar(value, wanted, tensor)) return true;
  if (const Tensor* const own = tensor_of(value)) {
    if (wanted != DataType::kInvalid && own->dtype() != wanted)
      return fail(name, fmt::format("it is {}, but the graph needs {}",
                                    own->describe(), dtype_name(wanted)));
    tensor = *own;
    return true;
  }
  if (wanted == DataType::kString || PyBytes_Check(value)) {
    // NumPy's own arrays of texts cannot end with zero bytes.
    std::string text;
    if (PyBytes_Check(value) || PyUnicode_Check(value)) {
      if (!text_element(value, name, text)) return false;
      tensor = Tensor::scalar(std::move(text));
      return true;
    }
    const Owned objects(PyArray_FromAny(
        value, PyArray_DescrFromType(NPY_OBJECT), 0, 0, 0, nullptr));
    return objects && from_array(objects.array(), wanted, name, tensor);
  }
  if (value == Py_None) return fail(name, "None is no value");
  const Owned array(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr));
  return array && from_array(array.array(), wanted, name, tensor);
}

}  // namespace

bool to_tensor(PyObject* value, DataType wanted, std::string_view name,
               Tensor& tensor) noexcept try {
  return convert(value, wanted, name, tensor);
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_MemoryError, failure.what());
  return false;
}

}  // namespace tagflow::python
