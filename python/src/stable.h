// Names of CPython's whole interface, for its stable one (abi3), which has only
// slower functions for them. A wheel of the stable one is for all later
// versions of CPython, too.
#pragma once

#include <Python.h>

#ifdef Py_LIMITED_API
#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_SET_ITEM PyTuple_SetItem
#define PyList_SET_ITEM PyList_SetItem
#define PyDict_GET_SIZE PyDict_Size
#define PyFloat_AS_DOUBLE PyFloat_AsDouble
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_GET_SIZE PyBytes_Size
#endif

namespace tagflow::python {

// A new object of a type made by hand, and its end: the type's own functions,
// which a type on the heap has unless it says otherwise.
inline PyObject* new_object(PyTypeObject* type) {
  return PyType_GenericAlloc(type, 0);
}
inline void free_object(PyObject* self, bool is_collected) {
  PyTypeObject* const type = Py_TYPE(self);
  if (is_collected) {
    PyObject_GC_Del(self);
  } else {
    PyObject_Free(self);
  }
  Py_DECREF(type);
}

// The text of a str, or null with an error.
inline const char* text_of_str(PyObject* text) {
  return PyUnicode_AsUTF8AndSize(text, nullptr);
}

// Calls with the elements of a tuple.
inline PyObject* call_with_tuple(PyObject* callable, PyObject* args) {
#ifdef Py_LIMITED_API
  return PyObject_Call(callable, args, nullptr);
#else
  return PyObject_Vectorcall(callable, PySequence_Fast_ITEMS(args),
                             size_t(PyTuple_GET_SIZE(args)), nullptr);
#endif
}

}  // namespace tagflow::python
