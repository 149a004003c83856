// The native module of the Python package tagflow.
#define TAGFLOW_LOADS_NUMPY
#include "python/src/bindings.h"
#include "python/src/convert.h"
#include "python/src/error.h"
#include "python/src/numpy_api.h"

namespace tagflow::python {
namespace {

void load_numpy() {
  if (_import_array() < 0) throw nb::python_error();
}

}  // namespace
}  // namespace tagflow::python

NB_MODULE(_native, module) {
  using namespace tagflow::python;  // NOLINT: the module's own names
  // A thread that still runs when the process ends holds what it uses.
  nanobind::set_leak_warnings(false);
  load_numpy();
  module.attr("__version__") = TAGFLOW_VERSION;
  bind_tensor(module);
  bind_graph(module);
  bind_callable(module);
  bind_session(module);
  bind_files(module);
  bind_build(module);
}
