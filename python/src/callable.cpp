// The path of a call, from Python's arguments to its results.
//
// It is a type made by hand, not by nanobind: a call finds its arguments in an
// array, without a tuple, and takes a fraction of a microsecond.
#include <nanobind/stl/string_view.h>
#include <structmember.h>

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <memory>
#include <span>

#include "python/src/bindings.h"
#include "python/src/callable_object.h"
#include "python/src/convert.h"
#include "python/src/error.h"
#include "python/src/gil.h"
#include "python/src/lend.h"
#include "python/src/pending.h"
#include "python/src/stable.h"

namespace tagflow::python {
namespace {

// Tensors are over-aligned, which the default allocator ignores.
using Feeds = boost::container::small_vector<Tensor, 6, std::allocator<Tensor>>;

struct CallableObject {
  PyObject_HEAD vectorcallfunc call;
  CallableParts* parts;
};

PyTypeObject* callable_type = nullptr;
unsigned long main_thread = 0;

CallableParts& parts_of(PyObject* self) {
  return *reinterpret_cast<CallableObject*>(self)->parts;
}

PyObject* type_error(const std::string& what) {
  PyErr_SetString(PyExc_TypeError, what.c_str());
  return nullptr;
}

std::string parameters(const CallableParts& parts) {
  std::string text;
  for (const auto& slot : parts.feeds)
    text += fmt::format("{}{:?}", text.empty() ? "" : ", ",
                        nb::cast<std::string_view>(slot.parameter));
  return text.empty() ? "it takes no arguments" : "it takes " + text;
}

// The index of the slot with that name, or the number of slots.
size_t find_slot(const CallableParts& parts, PyObject* name) {
  // Names in a program are interned, as ours are.
  for (size_t i = 0; i < parts.feeds.size(); ++i)
    if (parts.feeds[i].parameter.ptr() == name) return i;
  for (size_t i = 0; i < parts.feeds.size(); ++i)
    if (PyUnicode_Compare(parts.feeds[i].parameter.ptr(), name) == 0) return i;
  return parts.feeds.size();
}

// Converts the arguments. False: an error is set.
bool take_arguments(const CallableParts& parts, PyObject* const* args,
                    size_t positional, PyObject* names, Feeds& feeds) {
  const size_t count = parts.feeds.size();
  const size_t named = names == nullptr ? 0 : size_t(PyTuple_GET_SIZE(names));
  if (positional + named != count) {
    type_error(fmt::format("{} arguments, but {}", positional + named,
                           parameters(parts)));
    return false;
  }
  feeds.resize(count);
  for (size_t i = 0; i < positional; ++i)
    if (!to_tensor(args[i], parts.feeds[i].dtype, parts.feeds[i].tensor,
                   feeds[i]))
      return false;
  for (size_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, Py_ssize_t(i));
    const size_t at = find_slot(parts, name);
    if (at == count || feeds[at].valid()) {
      const char* const text = text_of_str(name);
      type_error(fmt::format("{} argument \"{}\": {}",
                             at == count ? "an unknown" : "a repeated",
                             text == nullptr ? "?" : text, parameters(parts)));
      return false;
    }
    if (!to_tensor(args[positional + i], parts.feeds[at].dtype,
                   parts.feeds[at].tensor, feeds[at]))
      return false;
  }
  return true;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t flags,
               PyObject* names) noexcept try {
  const CallableParts& parts = parts_of(self);
  Feeds feeds;
  if (!take_arguments(parts, args, size_t(PyVectorcall_NARGS(flags)), names,
                      feeds))
    return nullptr;
  const actors::RunOptions& options =
      is_main_thread() ? parts.on_main : parts.elsewhere;
  auto answer = [&] {
    const Released released;
    return parts.callable({feeds.data(), feeds.size()}, options);
  }();
  feeds.clear();
  sweep();
  if (!answer.ok()) {
    set_error(answer.status());
    return nullptr;
  }
  return results_object(parts, *std::move(answer));
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_RuntimeError, failure.what());
  return nullptr;
}

PyObject* run_async(PyObject* self, PyObject* const* args, Py_ssize_t count,
                    PyObject* names) noexcept try {
  const CallableParts& parts = parts_of(self);
  Feeds feeds;
  if (!take_arguments(parts, args, size_t(count), names, feeds)) return nullptr;
  return start_run(nb::borrow<nb::object>(self), parts,
                   {feeds.data(), feeds.size()})
      .release()
      .ptr();
} catch (nb::python_error& failure) {
  failure.restore();
  return nullptr;
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_RuntimeError, failure.what());
  return nullptr;
}

PyObject* get_parameters(PyObject* self, void*) {
  const CallableParts& parts = parts_of(self);
  PyObject* const names = PyTuple_New(Py_ssize_t(parts.feeds.size()));
  if (names == nullptr) return nullptr;
  for (size_t i = 0; i < parts.feeds.size(); ++i)
    PyTuple_SET_ITEM(names, Py_ssize_t(i),
                     nb::object(parts.feeds[i].parameter).release().ptr());
  return names;
}

PyObject* repr(PyObject* self) noexcept try {
  const CallableParts& parts = parts_of(self);
  std::string text = "<tagflow.Callable(";
  for (size_t i = 0; i < parts.feeds.size(); ++i)
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ",
                        nb::cast<std::string_view>(parts.feeds[i].parameter),
                        dtype_name(parts.feeds[i].dtype));
  text += fmt::format("), {} result{}>", parts.num_fetches,
                      parts.num_fetches == 1 ? "" : "s");
  return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
} catch (const std::exception& failure) {
  PyErr_SetString(PyExc_MemoryError, failure.what());
  return nullptr;
}

void dealloc(PyObject* self) {
  auto* const object = reinterpret_cast<CallableObject*>(self);
  {
    // The session may end with it, which waits for its runs.
    CallableParts& parts = *object->parts;
    std::shared_ptr<actors::Session> session = std::move(parts.session);
    actors::Callable last = std::move(parts.callable);
    const Released released;
    last = actors::Callable();
    session.reset();
  }
  delete object->parts;
  free_object(self, /*is_collected=*/false);
}

// Session makes them, and nobody else.
PyObject* refuse_to_make(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "Session.make_callable() makes objects of this class");
  return nullptr;
}

PyMethodDef methods[] = {
    {"run_async",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&run_async)),
     METH_FASTCALL | METH_KEYWORDS,
     "run_async($self, /, *args, **kwargs)\n--\n\n"
     "Starts a run with these arguments; returns its Pending result."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"parameters", &get_parameters, nullptr,
     "The names of the arguments, in their order.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                          offsetof(CallableObject, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&refuse_to_make)},
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(&repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_members, members},
    {Py_tp_doc,
     const_cast<char*>("A prepared part of a graph: call it with the feeds, by "
                       "position or by name. Many threads may call it.")},
    {0, nullptr}};
#ifndef Py_TPFLAGS_HAVE_VECTORCALL  // CPython 3.9
#define Py_TPFLAGS_HAVE_VECTORCALL _Py_TPFLAGS_HAVE_VECTORCALL
#endif
PyType_Spec spec = {"tagflow._native.Callable", sizeof(CallableObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

PyObject* results_object(const CallableParts& parts,
                         std::vector<Tensor> values) {
  if (parts.form == ResultForm::kSingle) return to_python(std::move(values[0]));
  const auto count = Py_ssize_t(values.size());
  PyObject* const all = parts.form == ResultForm::kDict   ? PyDict_New()
                        : parts.form == ResultForm::kList ? PyList_New(count)
                                                          : PyTuple_New(count);
  if (all == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const value = to_python(std::move(values[size_t(i)]));
    if (value == nullptr) {
      Py_DECREF(all);
      return nullptr;
    }
    if (parts.form == ResultForm::kList) {
      PyList_SET_ITEM(all, i, value);
    } else if (parts.form == ResultForm::kTuple) {
      PyTuple_SET_ITEM(all, i, value);
    } else {
      const int failed =
          PyDict_SetItem(all, parts.keys[size_t(i)].ptr(), value);
      Py_DECREF(value);
      if (failed != 0) {
        Py_DECREF(all);
        return nullptr;
      }
    }
  }
  return all;
}

bool no_signal() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool goes_on = PyErr_CheckSignals() == 0;
  PyGILState_Release(state);
  return goes_on;
}

bool is_main_thread() { return PyThread_get_thread_ident() == main_thread; }

nb::object make_callable_object(std::unique_ptr<CallableParts> parts) {
  auto* const object =
      reinterpret_cast<CallableObject*>(new_object(callable_type));
  if (object == nullptr) throw nb::python_error();
  object->call = &call;
  object->parts = parts.release();
  return nb::steal<nb::object>(reinterpret_cast<PyObject*>(object));
}

void bind_callable(nb::module_& module) {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  bind_pending(module);
  const nb::object type = nb::steal<nb::object>(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  callable_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  module.attr("Callable") = type;
  nb::object(type).release();  // as long as the process
}

}  // namespace tagflow::python
