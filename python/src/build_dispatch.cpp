// The way of a call to the trace of its signature.
//
// It is a type made by hand, since a call must cost little: tagflow.Function
// derives from it. A call whose arguments are arrays and numbers that an
// earlier call had is answered here; everything else is handed to the method
// `_call` in Python, which traces, and adds entries.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "python/src/build_scope.h"
#include "python/src/dtypes.h"
#include "python/src/error.h"

namespace tagflow::python {
namespace {

namespace nb = nanobind;

using Dims = std::vector<int64_t>;

// Numbers of Python, which have no type of NumPy.
enum Kind : int { kInt = -1, kFloat = -2, kBool = -3 };

// What a signature says of one argument. A dimension of -1 is any.
struct Expected {
  int type = 0;  // NumPy's number, or a Kind
  bool any_rank = false;
  Dims dims;
};

struct Entry {
  std::vector<Expected> arguments;
  nb::object callable;
  nb::object finish;   // called with the result; None: it is returned
  nb::object explain;  // called with an exception, before it is raised
};

using Entries = std::vector<std::shared_ptr<const Entry>>;

struct DispatchObject {
  PyObject_HEAD Entries* entries;
};

// Beyond this many, the oldest is dropped: a search must stay short.
constexpr size_t kMaxEntries = 16;

thread_local int open_traces = 0;

DispatchObject& object_of(PyObject* self) {
  return *reinterpret_cast<DispatchObject*>(self);
}

bool fits_int32(PyObject* number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow == 0 && value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

bool matches(const Expected& expected, PyObject* argument) {
  if (PyArray_CheckExact(argument)) {
    auto* const array = reinterpret_cast<PyArrayObject*>(argument);
    if (PyArray_TYPE(array) != expected.type || !PyArray_ISNOTSWAPPED(array))
      return false;
    if (expected.any_rank) return true;
    const auto rank = size_t(PyArray_NDIM(array));
    if (rank != expected.dims.size()) return false;
    for (size_t i = 0; i < rank; ++i)
      if (expected.dims[i] >= 0 &&
          expected.dims[i] != PyArray_DIM(array, int(i)))
        return false;
    return true;
  }
  if (PyFloat_CheckExact(argument)) return expected.type == kFloat;
  if (PyBool_Check(argument)) return expected.type == kBool;
  if (PyLong_CheckExact(argument))
    return expected.type == kInt && fits_int32(argument);
  if (PyArray_IsScalar(argument, Generic) &&
      (expected.dims.empty() || expected.any_rank)) {
    PyArray_Descr* const descr = PyArray_DescrFromScalar(argument);
    if (descr == nullptr) {
      PyErr_Clear();
      return false;
    }
    const bool same = descr->type_num == expected.type;
    Py_DECREF(descr);
    return same;
  }
  return false;
}

bool matches(const Entry& entry, PyObject* args) {
  const size_t count = entry.arguments.size();
  if (size_t(PyTuple_GET_SIZE(args)) != count) return false;
  for (size_t i = 0; i < count; ++i)
    if (!matches(entry.arguments[i], PyTuple_GET_ITEM(args, Py_ssize_t(i))))
      return false;
  return true;
}

// Lets Python add to the exception that is set where its node was made.
void explain(const Entry& entry) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr) {
    PyObject* const done =
        PyObject_CallFunctionObjArgs(entry.explain.ptr(), value, nullptr);
    Py_XDECREF(done);
    PyErr_Clear();
  }
  PyErr_Restore(type, value, traceback);
}

PyObject* run(const Entry& entry, PyObject* args) {
  PyObject* const result = call_with_tuple(entry.callable.ptr(), args);
  if (result == nullptr) {
    explain(entry);
    return nullptr;
  }
  if (entry.finish.is_none()) return result;
  PyObject* const finished =
      PyObject_CallFunctionObjArgs(entry.finish.ptr(), result, nullptr);
  Py_DECREF(result);
  return finished;
}

PyObject* call_in_python(PyObject* self, PyObject* args, PyObject* names) {
  PyObject* const method = PyObject_GetAttrString(self, "_call");
  if (method == nullptr) return nullptr;
  PyObject* const result = PyObject_Call(method, args, names);
  Py_DECREF(method);
  return result;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* names) {
  if ((names == nullptr || PyDict_GET_SIZE(names) == 0) && open_traces == 0) {
    const Entries& entries = *object_of(self).entries;
    for (const auto& entry : entries) {
      if (!matches(*entry, args)) continue;
      // The call lets other threads run, which may change the list.
      const std::shared_ptr<const Entry> kept = entry;
      return run(*kept, args);
    }
  }
  return call_in_python(self, args, names);
}

// Throws.
Entry entry_of(nb::handle signature, nb::handle callable, nb::handle finish,
               nb::handle explain) {
  Entry entry{{},
              nb::borrow<nb::object>(callable),
              nb::borrow<nb::object>(finish),
              nb::borrow<nb::object>(explain)};
  for (const nb::handle item : signature) {
    const auto pair = nb::cast<nb::tuple>(item);
    Expected expected;
    expected.type = nb::cast<int>(pair[0]);
    expected.any_rank = pair[1].is_none();
    if (!expected.any_rank)
      for (const nb::handle dim : nb::cast<nb::tuple>(pair[1]))
        expected.dims.push_back(dim.is_none() ? -1 : nb::cast<int64_t>(dim));
    entry.arguments.push_back(std::move(expected));
  }
  return entry;
}

PyObject* add_entry(PyObject* self, PyObject* args) noexcept try {
  PyObject *signature, *callable, *finish, *explain;
  if (!PyArg_ParseTuple(args, "OOOO", &signature, &callable, &finish, &explain))
    return nullptr;
  auto entry = std::make_shared<const Entry>(
      entry_of(signature, callable, finish, explain));
  Entries& entries = *object_of(self).entries;
  if (entries.size() >= kMaxEntries) entries.erase(entries.begin());
  entries.push_back(std::move(entry));
  Py_RETURN_NONE;
} catch (nb::python_error& failure) {
  failure.restore();
  return nullptr;
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_RuntimeError, failure.what());
  return nullptr;
}

PyObject* clear_entries(PyObject* self, PyObject*) {
  const Entries dropped = std::exchange(*object_of(self).entries, {});
  Py_RETURN_NONE;
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = new_object(type);
  if (self != nullptr) object_of(self).entries = new Entries;
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (object_of(self).entries == nullptr) return 0;
  for (const auto& entry : *object_of(self).entries) {
    Py_VISIT(entry->callable.ptr());
    Py_VISIT(entry->finish.ptr());
    Py_VISIT(entry->explain.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  const Entries dropped = std::exchange(*object_of(self).entries, {});
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete std::exchange(object_of(self).entries, nullptr);
  free_object(self, /*is_collected=*/true);
}

PyMethodDef methods[] = {
    {"_add_entry", &add_entry, METH_VARARGS,
     "_add_entry($self, signature, callable, finish, explain, /)\n--\n\n"
     "Answers calls of that signature from now on."},
    {"_clear_entries", &clear_entries, METH_NOARGS,
     "_clear_entries($self, /)\n--\n\nForgets all signatures."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_call, reinterpret_cast<void*>(&call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("Finds the trace for the arguments of a "
                                  "call.")},
    {0, nullptr}};
PyType_Spec spec = {
    "tagflow._native.Dispatch", sizeof(DispatchObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

void bind_build_dispatch(nb::module_& module) {
  const nb::object type = nb::steal<nb::object>(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  module.attr("Dispatch") = type;
  module.def(
      "open_trace", [] { ++open_traces; },
      "This thread is tracing: calls of functions become part of the trace.");
  module.def("close_trace", [] { --open_traces; });
}

}  // namespace tagflow::python
