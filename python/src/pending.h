// tagflow._native.Pending: a run that was started and may not be over yet.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <vector>

#include "graph/tensor.h"
#include "python/src/callable_object.h"

namespace tagflow::python {

// Starts a run of the callable, which the object of Python `owner` has. The
// feeds are kept until its end. REQUIRES: the GIL is held; throws.
nanobind::object start_run(nanobind::object owner, const CallableParts& parts,
                           std::span<const Tensor> feeds);
// A new reference to what a call returns; null with an error.
PyObject* results_object(const CallableParts& parts,
                         std::vector<Tensor> values);
void bind_pending(nanobind::module_& module);

}  // namespace tagflow::python
