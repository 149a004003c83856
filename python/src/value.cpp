#include "python/src/value.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "python/src/bindings.h"
#include "python/src/convert.h"
#include "python/src/dtypes.h"
#include "python/src/error.h"
#include "python/src/lend.h"

namespace tagflow::python {
namespace {

// Holds the tensor apart, since Python's memory is aligned to 16 bytes only.
struct Value {
  std::shared_ptr<const Tensor> tensor;
};

std::optional<nb::dlpack::dtype> dlpack_type(DataType dtype) {
  using nb::dlpack::dtype_code;
  const auto type = [&](dtype_code code) {
    return nb::dlpack::dtype{uint8_t(code), uint8_t(dtype_size(dtype) * 8), 1};
  };
  if (dtype == DataType::kBool) return type(dtype_code::Bool);
  if (dtype == DataType::kBFloat16) return type(dtype_code::Bfloat);
  if (is_complex(dtype)) return type(dtype_code::Complex);
  if (is_floating(dtype)) return type(dtype_code::Float);
  switch (plain_twin(dtype)) {
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
      return type(dtype_code::Int);
    case DataType::kUInt8:
    case DataType::kUInt16:
    case DataType::kUInt32:
    case DataType::kUInt64:
      return type(dtype_code::UInt);
    default:
      return std::nullopt;
  }
}

DataType type_of_dlpack(nb::dlpack::dtype type) {
  if (type.lanes != 1) return DataType::kInvalid;
  for (int number = 1; number <= int(DataType::kUInt64); ++number) {
    const auto dtype = DataType(number);
    if (!is_plain(dtype) || plain_twin(dtype) != dtype) continue;
    const auto other = dlpack_type(dtype);
    if (other && other->code == type.code && other->bits == type.bits)
      return dtype;
  }
  return DataType::kInvalid;
}

// The strides of a row-major array, which not all readers of DLPack leave out.
nb::object dlpack(const Value& value, const nb::kwargs&) {
  const Tensor& tensor = *value.tensor;
  const auto type = tensor.valid() ? dlpack_type(tensor.dtype()) : std::nullopt;
  if (!type) {
    const std::string what = tensor.describe() + " has no form in DLPack";
    PyErr_SetString(PyExc_BufferError, what.c_str());
    throw nb::python_error();
  }
  std::vector<size_t> shape;
  for (int i = 0; i < tensor.rank(); ++i)
    shape.push_back(size_t(tensor.dim(i)));
  auto* const kept = new std::shared_ptr<const Tensor>(value.tensor);
  const nb::capsule owner(kept, [](void* p) noexcept {
    delete static_cast<std::shared_ptr<const Tensor>*>(p);
  });
  const nb::ndarray<> array(const_cast<void*>(tensor.raw()), shape.size(),
                            shape.data(), owner, nullptr, *type,
                            nb::device::cpu::value, 0);
  return nb::cast(array);
}

using CpuArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// The array of an object that has the methods of DLPack. Throws.
CpuArray array_of(nb::handle object) {
  CpuArray array;
  if (nb::try_cast(object, array) && array.is_valid()) return array;
  if (!nb::hasattr(object, "__dlpack__"))
    throw nb::type_error(
        fmt::format("from_dlpack takes an array with __dlpack__, not {}",
                    nb::type_name(object.type()).c_str())
            .c_str());
  // What it says itself, if that is why.
  const nb::object capsule = object.attr("__dlpack__")();
  throw nb::type_error(
      "from_dlpack: the array is not in the memory of this machine, or its "
      "__dlpack__() has returned no capsule that was not used before");
}

Value from_dlpack(nb::handle object) {
  const CpuArray array = array_of(object);
  const DataType dtype = type_of_dlpack(array.dtype());
  if (dtype == DataType::kInvalid)
    throw nb::type_error("from_dlpack: tagflow has no such element type");
  Shape shape;
  for (size_t i = 0; i < array.ndim(); ++i)
    shape.add_dim(int64_t(array.shape(i)));
  if (can_lend(array.data(), array.nbytes(), dtype)) {
    auto* const kept = new CpuArray(array);
    const nb::capsule owner(
        kept, [](void* p) noexcept { delete static_cast<CpuArray*>(p); });
    return {std::make_shared<const Tensor>(
        take(lend(owner.ptr(), array.data(), dtype, shape)))};
  }
  Tensor tensor = take(Tensor::allocate(dtype, shape));
  if (array.nbytes() > 0)
    std::memcpy(tensor.mutable_raw(), array.data(), array.nbytes());
  return {std::make_shared<const Tensor>(std::move(tensor))};
}

nb::object numpy(const Value& value) {
  return nb::steal<nb::object>([&] {
    PyObject* const array = view_of(*value.tensor);
    if (array == nullptr) throw nb::python_error();
    return array;
  }());
}

}  // namespace

const Tensor* tensor_of(PyObject* object) {
  const nb::handle handle(object);
  return nb::isinstance<Value>(handle) ? nb::cast<Value&>(handle).tensor.get()
                                       : nullptr;
}

PyObject* value_object(Tensor tensor) {
  return nb::cast(Value{std::make_shared<const Tensor>(std::move(tensor))})
      .release()
      .ptr();
}

void bind_tensor(nb::module_& module) {
  nb::class_<Value>(module, "Tensor",
                    "A value of the engine: immutable, and fed without a copy.")
      .def(
          "__init__",
          [](Value* self, nb::handle value, nb::handle dtype) {
            DataType wanted = DataType::kInvalid;
            if (!dtype.is_none()) {
              wanted = to_dtype(dtype.ptr());
              if (wanted == DataType::kInvalid) throw nb::python_error();
            }
            auto tensor = std::make_shared<Tensor>();
            if (!to_tensor(value.ptr(), wanted, {}, *tensor))
              throw nb::python_error();
            new (self) Value{std::move(tensor)};
          },
          nb::arg("value"), nb::arg("dtype") = nb::none(),
          "Of an array, a scalar, a text, or nested lists of these: a copy, "
          "but of an array that nobody can write.")
      .def_prop_ro(
          "shape",
          [](const Value& self) { return shape_object(self.tensor->shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype",
          [](const Value& self) {
            PyObject* const type = dtype_object(self.tensor->dtype());
            if (type == nullptr) throw nb::python_error();
            return nb::steal<nb::object>(type);
          },
          nb::sig("def dtype(self) -> numpy.dtype"),
          "The type as NumPy has it; texts are objects.")
      .def_prop_ro(
          "type_name",
          [](const Value& self) {
            return nb::str(dtype_name(self.tensor->dtype()).c_str());
          },
          nb::sig("def type_name(self) -> str"),
          "The type as graphs have it: \"float\", \"resource\".")
      .def(
          "__array__",
          [](const Value& self, nb::handle dtype, nb::handle copy) {
            const nb::object array = numpy(self);
            if (dtype.is_none() && copy.is_none()) return array;
            nb::dict options;
            if (!copy.is_none()) options["copy"] = copy;
            const nb::object wanted =
                dtype.is_none() ? array.attr("dtype") : nb::borrow(dtype);
            return nb::object(array.attr("astype")(wanted, **options));
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: object = None, copy: bool | None "
                  "= None) -> numpy.ndarray"))
      .def("numpy", &numpy, nb::sig("def numpy(self) -> numpy.ndarray"),
           "An array of the same memory that cannot be written; texts are "
           "copied.")
      .def("__dlpack__", &dlpack,
           nb::sig("def __dlpack__(self, **kwargs: "
                   "object) -> object"))
      .def(
          "__dlpack_device__",
          [](const Value&) { return nb::make_tuple(1, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__len__",
           [](const Value& self) {
             if (self.tensor->rank() == 0)
               throw nb::type_error("a scalar has no length");
             return self.tensor->dim(0);
           })
      .def("__repr__", [](const Value& self) {
        const std::string text =
            "tagflow.Tensor(" + self.tensor->to_string() + ")";
        return nb::steal<nb::str>(PyUnicode_DecodeUTF8(
            text.data(), Py_ssize_t(text.size()), "replace"));
      });
  module.def("from_dlpack", &from_dlpack, nb::arg("array").none(),
             nb::sig("def from_dlpack(array: object) -> Tensor"),
             "A Tensor of the memory of a row-major array of any library, "
             "without a copy if it begins at 64 bytes. The array must not "
             "change as long as the Tensor lives.");
}

}  // namespace tagflow::python
