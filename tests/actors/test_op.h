// Ops of tests.
#pragma once

#include <string>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::actors {

// Registers name(x: dtype) -> y of the same dtype and shape, which the passes
// leave alone, and its kernel of CPUs; "T" stands for any dtype. REQUIRES:
// called once per name.
template <class K>
void add_test_op(const char* name, const std::string& dtype = "T") {
  graph::OpDefBuilder op(name);
  op.input("x: " + dtype).output("y: " + dtype);
  if (dtype == "T") op.attr("T: type");
  graph::OpRegistry::global().add(op.stateful().shape(graph::unchanged_shape));
  devices::KernelRegistry::global().add<K>(name);
}

}  // namespace tagflow::actors
