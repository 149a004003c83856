// What the sources of the module share. Each adds its part to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace tagflow::python {

namespace nb = nanobind;

// In this order: later ones use the types of earlier ones.
void bind_tensor(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_callable(nb::module_& module);
void bind_session(nb::module_& module);
void bind_files(nb::module_& module);
void bind_build(nb::module_& module);

}  // namespace tagflow::python
