// Scope and Output: how Python adds nodes to a graph.
#include "python/src/build_scope.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "graph/builder/ops_control_flow.h"
#include "graph/function.h"
#include "graph/op_registry.h"
#include "python/src/bindings.h"
#include "python/src/convert.h"
#include "python/src/error.h"
#include "python/src/graph_object.h"

namespace tagflow::python {
namespace {

using graph::Output;
using graph::Outputs;
using graph::Scope;

constexpr const char* kClosed =
    "[trace] this belongs to the body of a function that is finished";

ScopeObject root_scope(const nb::object& owner) {
  auto& object = nb::cast<GraphObject&>(owner);
  auto body = std::make_shared<Body>(Body{owner, &object.graph});
  return {Scope(object.graph), std::move(body)};
}

nb::list add_op(const ScopeObject& self, const std::string& op,
                nb::handle inputs, nb::handle attrs,
                const std::optional<std::string>& name) {
  const Scope& scope = self.open();
  const graph::OpDef& def = find_op(scope.graph(), op);
  const Outputs list = self.take_all(inputs);
  const graph::OpResult result =
      (name ? scope.named(*name) : scope).op(op, list, attrs_of(def, attrs));
  check(scope.status());
  if (result.size() == 0) return self.give_all({Output(result.node())});
  return self.give_all(graph::ops::all_outputs(result));
}

nb::object add_constant(const ScopeObject& self, nb::handle value,
                        nb::handle dtype,
                        const std::optional<std::string>& name) {
  DataType wanted = DataType::kInvalid;
  if (!dtype.is_none()) {
    wanted = to_dtype(dtype.ptr());
    if (wanted == DataType::kInvalid) throw nb::python_error();
  }
  Tensor tensor;
  if (!to_tensor(value.ptr(), wanted, "", tensor)) throw nb::python_error();
  const Scope& scope = self.open();
  const Output made = scope.constant(std::move(tensor), name.value_or("Const"));
  check(scope.status());
  return self.give(made);
}

// The names of the nodes from that number on, in the order in which they were
// added.
nb::list nodes_since(const ScopeObject& self, size_t first) {
  nb::list names;
  const auto nodes = self.open().graph().nodes();
  for (size_t i = first; i < nodes.size(); ++i)
    names.append(nb::cast(nodes[i]->name()));
  return names;
}

nb::object dtype_of(const OutputObject& self) {
  if (self.body->graph == nullptr)
    raise(error(Code::kFailedPrecondition, "{}", kClosed));
  const DataType dtype = remove_ref(self.output.dtype());
  if (!is_plain(dtype) && dtype != DataType::kString)
    return nb::cast(dtype_name(dtype));
  PyObject* const object = dtype_object(dtype);
  if (object == nullptr) throw nb::python_error();
  return nb::steal<nb::object>(object);
}

std::string name_of(const OutputObject& self) {
  if (self.body->graph == nullptr)
    raise(error(Code::kFailedPrecondition, "{}", kClosed));
  return self.output.name();
}

void bind_output(nb::module_& module) {
  nb::class_<OutputObject>(module, "Output",
                           "An output of a node of a graph under construction.")
      .def_prop_ro("dtype", &dtype_of, "NumPy's type, or a name of the engine.")
      .def_prop_ro(
          "shape",
          [](const OutputObject& self) {
            if (self.body->graph == nullptr)
              raise(error(Code::kFailedPrecondition, "{}", kClosed));
            return shape_object(self.output.shape());
          },
          nb::sig("def shape(self) -> tuple[int | None, ...] | None"),
          "As far as it is known.")
      .def_prop_ro("name", &name_of, "\"node:port\".")
      .def_prop_ro(
          "is_operation",
          [](const OutputObject& self) {
            name_of(self);
            return self.output.is_operation();
          },
          "Whether the node has no outputs.")
      .def("__repr__", [](const OutputObject& self) {
        return self.body->graph == nullptr
                   ? std::string("<Output, finished>")
                   : fmt::format("<Output {:?}>", self.output.name());
      });
}

nb::dict op_info(const std::string& name) {
  const graph::OpDef& def = *take(graph::OpRegistry::global().find(name));
  nb::list inputs, outputs, attrs;
  for (const auto& arg : def.inputs)
    inputs.append(nb::make_tuple(
        arg.name, !arg.number_attr.empty() || !arg.type_list_attr.empty(),
        arg.type_attr,
        arg.dtype == DataType::kInvalid ? nb::none()
                                        : nb::cast(dtype_name(arg.dtype))));
  for (const auto& arg : def.outputs) outputs.append(nb::cast(arg.name));
  for (const auto& attr : def.attrs)
    attrs.append(nb::make_tuple(attr.name, attr.type,
                                attr.default_value
                                    ? nb::cast(attr.default_value->to_string())
                                    : nb::none()));
  nb::dict info;
  info["inputs"] = inputs;
  info["outputs"] = outputs;
  info["attrs"] = attrs;
  info["stateful"] = def.is_stateful;
  return info;
}

}  // namespace

const Scope& ScopeObject::open() const {
  if (body->graph == nullptr)
    raise(error(Code::kFailedPrecondition, "{}", kClosed));
  check(scope.status());
  return scope;
}

Output ScopeObject::take(nb::handle object) const {
  const auto& handle = nb::cast<const OutputObject&>(object);
  if (handle.body->graph == nullptr)
    raise(error(Code::kFailedPrecondition, "{}", kClosed));
  if (handle.body != body)
    raise(error(Code::kFailedPrecondition,
                "[trace] \"{}\" belongs to another graph",
                handle.output.name()));
  return handle.output;
}

Outputs ScopeObject::take_all(nb::handle list) const {
  Outputs outputs;
  for (const nb::handle item : list) outputs.push_back(take(item));
  return outputs;
}

nb::object ScopeObject::give(const Output& output) const {
  return nb::cast(OutputObject{output, body});
}

nb::list ScopeObject::give_all(const Outputs& outputs) const {
  nb::list list;
  for (const Output& output : outputs) list.append(give(output));
  return list;
}

void Callbacks::finish() const {
  if (kept_ != nullptr) std::rethrow_exception(kept_);
  check(scope_.scope.status());
}

const graph::OpDef& find_op(const graph::Graph& graph,
                            const std::string& name) {
  if (const graph::FunctionDef* function = graph.library().find(name))
    return function->signature;
  return *take(graph::OpRegistry::global().find(name));
}

void bind_build(nb::module_& module) {
  bind_output(module);
  nb::class_<ScopeObject> scope(
      module, "Scope", "Where nodes are added to a graph under construction.");
  scope
      .def(
          "__init__",
          [](ScopeObject* self, const nb::object& graph) {
            new (self) ScopeObject(root_scope(graph));
          },
          nb::arg("graph"))
      .def("op", &add_op, nb::arg("op"), nb::arg("inputs"),
           nb::arg("attrs") = nb::none(), nb::arg("name") = nb::none(),
           nb::sig("def op(self, op: str, inputs: list[Output], attrs: dict | "
                   "None = None, name: str | None = None) -> list[Output]"),
           "Adds a node of any op, with a flat list of inputs.")
      .def("constant", &add_constant, nb::arg("value"),
           nb::arg("dtype") = nb::none(), nb::arg("name") = nb::none(),
           "Adds a Const of an array or a number.")
      .def(
          "after",
          [](const ScopeObject& self, nb::handle outputs) {
            return self.with(
                self.open().with_control_dependencies(self.take_all(outputs)));
          },
          nb::arg("outputs"), "A scope whose nodes wait for these.")
      .def(
          "named",
          [](const ScopeObject& self, const std::string& name) {
            return self.with(self.open().named(name));
          },
          nb::arg("name"), "A scope for the next node or construct.")
      .def(
          "inside",
          [](const ScopeObject& self, const std::string& name) {
            return self.with(self.open().sub_scope(name));
          },
          nb::arg("name"), "A scope whose names have a prefix.")
      .def(
          "on_device",
          [](const ScopeObject& self, const std::string& device) {
            return self.with(self.open().with_device(device));
          },
          nb::arg("device"), "A scope whose nodes run on that device.")
      .def(
          "all_after",
          [](const ScopeObject& self, nb::handle outputs, nb::handle waits) {
            const Outputs all = graph::ops::tuple(
                self.open(), self.take_all(outputs), self.take_all(waits));
            check(self.scope.status());
            return self.give_all(all);
          },
          nb::arg("outputs"), nb::arg("waits"),
          "The same tensors, available once all of these are done.")
      .def("nodes_since", &nodes_since, nb::arg("first"),
           nb::sig("def nodes_since(self, first: int) -> list[str]"))
      .def_prop_ro(
          "num_nodes",
          [](const ScopeObject& self) { return self.open().graph().size(); })
      .def_prop_ro(
          "is_open",
          [](const ScopeObject& self) { return self.body->graph != nullptr; })
      .def(
          "same_graph",
          [](const ScopeObject& self, const OutputObject& output) {
            return output.body == self.body;
          },
          nb::arg("output"));
  bind_build_control(scope);
  bind_build_functions(scope);
  bind_build_gradients(scope);
  module.def("op_info", &op_info, nb::arg("op"),
             "The inputs, outputs and attributes of an op.");
  module.def("op_names", [] {
    nb::list names;
    for (const std::string& name : graph::OpRegistry::global().names())
      names.append(nb::cast(name));
    return names;
  });
  bind_build_dispatch(module);
}

}  // namespace tagflow::python
