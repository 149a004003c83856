#include "python/src/error.h"

namespace tagflow::python {

namespace nb = nanobind;

void set_error(const Status& status) noexcept {
  if (PyErr_Occurred() != nullptr) return;
  try {
    const std::string_view message = status.message();
    const nb::object exception =
        nb::module_::import_("tagflow.errors")
            .attr("make")(
                int(status.code()),
                nb::steal<nb::object>(PyUnicode_DecodeUTF8(
                    message.data(), Py_ssize_t(message.size()), "replace")));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())),
                    exception.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_RuntimeError, failure.what());
  }
}

void raise(const Status& status) {
  set_error(status);
  throw nb::python_error();
}

}  // namespace tagflow::python
