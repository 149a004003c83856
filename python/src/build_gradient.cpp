// Derivatives of the tensors of a graph.
#include <nanobind/stl/string.h>

#include "autodiff/gradients.h"
#include "autodiff/jacobian.h"
#include "autodiff/jvp.h"
#include "python/src/build_scope.h"
#include "python/src/error.h"

namespace tagflow::python {
namespace {

namespace nb = nanobind;

using graph::Output;
using graph::Outputs;

// Invalid for None.
Outputs optional_outputs(const ScopeObject& self, nb::handle list) {
  Outputs outputs;
  for (const nb::handle item : list)
    outputs.push_back(item.is_none() ? Output() : self.take(item));
  return outputs;
}

nb::list gradients(const ScopeObject& self, nb::handle ys, nb::handle xs,
                   nb::handle grad_ys) {
  autodiff::GradientOptions options;
  options.grad_ys = optional_outputs(self, grad_ys);
  options.zeros_if_unconnected = true;
  const Outputs grads = autodiff::dense_gradients(
      self.open(), self.take_all(ys), self.take_all(xs), options);
  check(self.scope.status());
  return self.give_all(grads);
}

nb::list jvp(const ScopeObject& self, nb::handle ys, nb::handle xs,
             nb::handle tangents) {
  autodiff::ForwardOptions options;
  options.zeros_if_unconnected = true;
  const Outputs along =
      autodiff::jvp(self.open(), self.take_all(ys), self.take_all(xs),
                    optional_outputs(self, tangents), options);
  check(self.scope.status());
  return self.give_all(along);
}

nb::object jacobian(const ScopeObject& self, nb::handle y, nb::handle x,
                    int64_t parallel_iterations) {
  const Output made =
      autodiff::jacobian(self.open(), self.take(y), self.take(x),
                         {.parallel_iterations = parallel_iterations});
  check(self.scope.status());
  return self.give(made);
}

}  // namespace

void bind_build_gradients(nb::class_<ScopeObject>& scope) {
  scope
      .def("gradients", &gradients, nb::arg("ys"), nb::arg("xs"),
           nb::arg("grad_ys"),
           "The gradients of the sum of the ys by each x; None in grad_ys "
           "stands for ones.")
      .def("jvp", &jvp, nb::arg("ys"), nb::arg("xs"), nb::arg("tangents"),
           "The derivatives of the ys along the tangents; None is zero.")
      .def("jacobian", &jacobian, nb::arg("y"), nb::arg("x"),
           nb::arg("parallel_iterations"), "Of shape y.shape + x.shape.");
}

}  // namespace tagflow::python
