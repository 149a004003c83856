// tagflow.Graph: what a program is.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "graph/function.h"
#include "python/src/bindings.h"
#include "python/src/convert.h"
#include "python/src/error.h"
#include "python/src/graph_object.h"

namespace tagflow::python {
namespace {

// A node as it was when it was asked for.
struct NodeObject {
  std::string name, op, device;
  std::vector<std::string> inputs;
  std::vector<DataType> dtypes;  // of its outputs
  std::vector<PartialShape> shapes;
};

NodeObject describe(const graph::Node& node) {
  NodeObject object;
  graph::NodeDef def = graph::Graph::to_def(node);
  object.name = std::move(def.name);
  object.op = std::move(def.op);
  object.device = std::move(def.device);
  object.inputs = std::move(def.inputs);
  for (int port = 0; port < node.num_outputs(); ++port) {
    object.dtypes.push_back(node.output_dtypes()[size_t(port)]);
    object.shapes.push_back(node.output_shape(port));
  }
  return object;
}

std::string repr(const NodeObject& node) {
  std::string text = fmt::format("<Node {:?}: {}", node.name, node.op);
  for (size_t i = 0; i < node.dtypes.size(); ++i)
    text +=
        fmt::format("{} {}{}", i == 0 ? " ->" : ",", dtype_name(node.dtypes[i]),
                    node.shapes[i].has_rank() ? node.shapes[i].to_string()
                                              : std::string("[...]"));
  return text + ">";
}

std::unique_ptr<GraphObject> of_file(graph::GraphFile&& file,
                                     std::string path) {
  auto object = std::make_unique<GraphObject>();
  object->signatures = std::move(file.signatures);
  object->queue_runners = std::move(file.queue_runners);
  object->state = std::move(file.state);
  object->path = std::move(path);
  object->graph = unlocked([&] {
    auto graph = graph::build_graph(std::move(file));
    if (!graph.ok() && !object->path.empty())
      return Result<graph::Graph>(
          std::move(graph).status().with_prefix(object->path + ": "));
    return graph;
  });
  return object;
}

std::unique_ptr<GraphObject> parse(const nb::bytes& bytes) {
  const std::string_view view(bytes.c_str(), bytes.size());
  return of_file(unlocked([&] { return graph::parse_graphdef(view); }), {});
}

std::unique_ptr<GraphObject> parse_text(const std::string& text) {
  return of_file(unlocked([&] { return graph::parse_graphdef_text(text); }),
                 {});
}

std::unique_ptr<GraphObject> load(const std::string& path) {
  return of_file(unlocked([&] { return graph::load_file(path); }), path);
}

nb::object names_of(const std::map<std::string, std::string>& names) {
  nb::dict dict;
  for (const auto& [key, tensor] : names) dict[key.c_str()] = tensor;
  return dict;
}

nb::object signatures(const GraphObject& self) {
  nb::dict dict;
  for (const auto& [name, signature] : self.signatures)
    dict[name.c_str()] =
        nb::make_tuple(names_of(signature.inputs), names_of(signature.outputs));
  return dict;
}

nb::object tensor_type(const GraphObject& self, const std::string& name) {
  const graph::Endpoint at = take(self.graph.endpoint(name));
  return nb::make_tuple(
      dtype_name(remove_ref(at.node->output_dtypes()[size_t(at.port)])),
      shape_object(at.node->output_shape(at.port)));
}

// The tensors that are fed and fetched if nobody says which: placeholders that
// have to be fed, and outputs that no node reads.
nb::object ends(const GraphObject& self) {
  nb::list inputs, outputs;
  std::vector<bool> is_read(self.graph.end_id());
  for (const graph::Node* node : self.graph.nodes()) {
    for (const graph::Endpoint& input : node->inputs())
      if (input.node != nullptr) is_read[input.node->id()] = true;
    for (const graph::Node* input : node->control_inputs())
      is_read[input->id()] = true;
  }
  for (const graph::Node* node : self.graph.nodes()) {
    if (node->op() == "Placeholder") {
      inputs.append(node->name());
    } else if (!is_read[node->id()] && node->num_outputs() > 0) {
      for (int port = 0; port < node->num_outputs(); ++port)
        outputs.append(port == 0 ? node->name()
                                 : fmt::format("{}:{}", node->name(), port));
    }
  }
  return nb::make_tuple(inputs, outputs);
}

void bind_node(nb::module_& module) {
  nb::class_<NodeObject>(module, "Node", "A node of a graph, to look at.")
      .def_ro("name", &NodeObject::name)
      .def_ro("op", &NodeObject::op, "The name of what it computes.")
      .def_ro("device", &NodeObject::device,
              "The device that it asks for; \"\" for any.")
      .def_ro("inputs", &NodeObject::inputs,
              "\"name\", \"name:port\", or \"^name\" of a control input.")
      .def_prop_ro(
          "dtypes",
          [](const NodeObject& self) {
            nb::list names;
            for (const DataType dtype : self.dtypes)
              names.append(dtype_name(dtype));
            return names;
          },
          nb::sig("def dtypes(self) -> list[str]"), "Of its outputs.")
      .def_prop_ro(
          "shapes",
          [](const NodeObject& self) {
            nb::list shapes;
            for (const PartialShape& shape : self.shapes)
              shapes.append(shape_object(shape));
            return shapes;
          },
          nb::sig("def shapes(self) -> list[tuple[int | None, ...] | None]"),
          "Of its outputs, as far as they are known.")
      .def("__repr__", &repr);
}

}  // namespace

void bind_graph(nb::module_& module) {
  bind_node(module);
  nb::class_<GraphObject>(module, "Graph",
                          "What a program is: nodes, functions, and, of a "
                          "saved model, its signatures.")
      .def(nb::init<>())
      .def_static(
          "from_graphdef",
          [](nb::handle source) {
            return nb::module_::import_("tagflow.graph").attr("read")(source);
          },
          nb::arg("source"),
          nb::sig("def from_graphdef(source: object) -> Graph"),
          "A graph of TensorFlow: the bytes of a GraphDef, the path of a "
          "GraphDef, MetaGraph or SavedModel, a GraphDef message, or a "
          "tf.Graph.")
      .def_static("_parse", &parse, nb::arg("graphdef"))
      .def_static("_parse_text", &parse_text, nb::arg("text"))
      .def_static("_load", &load, nb::arg("path"))
      .def_prop_ro(
          "nodes",
          [](const GraphObject& self) {
            nb::list nodes;
            for (const graph::Node* node : self.graph.nodes())
              nodes.append(describe(*node));
            return nodes;
          },
          nb::sig("def nodes(self) -> list[Node]"),
          "All nodes, in the order in which they were added.")
      .def(
          "node",
          [](const GraphObject& self, const std::string& name) {
            return describe(*take(self.graph.endpoint(name)).node);
          },
          nb::arg("name"), "The node of that name; NotFoundError.")
      .def("__len__", [](const GraphObject& self) { return self.graph.size(); })
      .def("__contains__",
           [](const GraphObject& self, const std::string& name) {
             return self.graph.find(name) != nullptr;
           })
      .def_prop_ro("_signatures", &signatures,
                   nb::sig("def _signatures(self) -> dict[str, "
                           "tuple[dict[str, str], dict[str, str]]]"))
      .def_prop_ro("_path", [](const GraphObject& self) { return self.path; })
      .def("_ends", &ends,
           nb::sig("def _ends(self) -> tuple[list[str], list[str]]"))
      .def("tensor_type", &tensor_type, nb::arg("name"),
           nb::sig("def tensor_type(self, name: str) -> tuple[str, tuple[int | "
                   "None, ...] | None]"),
           "The element type and the shape of a tensor, \"node:port\" or "
           "\"node\", as far as they are known.")
      .def(
          "to_graphdef",
          [](const GraphObject& self) {
            const std::string bytes =
                unlocked([&] { return graph::write_graphdef(self.graph); });
            return nb::bytes(bytes.data(), bytes.size());
          },
          "The bytes of a GraphDef, with the functions.")
      .def(
          "to_text",
          [](const GraphObject& self) {
            return unlocked(
                [&] { return graph::write_graphdef_text(self.graph); });
          },
          "The same as text.")
      .def(
          "save",
          [](const GraphObject& self, const std::string& path) {
            unlocked([&] { return graph::save_graph(self.graph, path); });
          },
          nb::arg("path"),
          "Writes a GraphDef: text, if the name ends in .pbtxt or .txt.")
      .def(
          "extend",
          [](GraphObject& self, const GraphObject& other) {
            check(self.graph.extend(other.graph));
          },
          nb::arg("other"),
          "Adds copies of all nodes and functions. No other thread may use the "
          "graph meanwhile.")
      .def("__repr__", [](const GraphObject& self) {
        std::string text =
            fmt::format("<tagflow.Graph: {} nodes", self.graph.size());
        const char* separator = "; signatures ";
        for (const auto& [name, unused] : self.signatures) {
          text += separator + fmt::format("{:?}", name);
          separator = ", ";
        }
        return text + ">";
      });
}

}  // namespace tagflow::python
