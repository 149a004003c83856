// Scope: where ops are added to a graph.
//
//   Graph graph;
//   Scope s(graph);
//   Output x = ops::placeholder(s, DataType::kFloat, {2});
//   Output y = ops::add(s.named("y"), ops::square(s, x), 1);
//   if (!s.status().ok()) ...
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder/output.h"
#include "graph/graph.h"

namespace tagflow::graph {

class BuilderState;  // graph/builder/context.h
struct Context;

// A graph with the common properties of the ops that are added through this
// scope: a name prefix, a device, attributes, control inputs, and the enclosing
// branch or loop. A cheap value; scopes derived from one another share the
// graph and the status.
//
// The first error is kept; later calls do nothing and return invalid Outputs,
// so a program can check status() once, after building. After an error the
// graph is incomplete and unusable.
//
// The graph must outlive the scope and keep its address. Thread-compatible
// together with the graph.
class Scope {
 public:
  explicit Scope(Graph& graph);

  Graph& graph() const;
  // The first error of all scopes that share the root scope of this one.
  Status status() const;
  bool ok() const;
  // Keeps `status` if it is the first error.
  void fail(Status status) const;

  // Ops are named "prefix/name"; the prefix is made unique among the scopes.
  Scope sub_scope(std::string_view name) const;
  // The name of the next op, instead of its type; a number is added if the name
  // is taken. Also names a cond() or while_loop().
  Scope named(std::string_view name) const;
  // `device` is a full or partial device name; "" lets placement decide.
  Scope with_device(std::string device) const;
  // An attribute for every op, such as "_class". The name must start with _.
  Scope with_attr(std::string name, AttrValue value) const;
  // Places every op on the device of `output`'s node.
  Scope colocate_with(const Output& output) const;
  // Every op also waits for these, in addition to earlier dependencies. If they
  // are outside of a loop, every iteration waits for them.
  Scope with_control_dependencies(const Outputs& outputs) const;
  Scope without_control_dependencies() const;

  // Adds a node of any op, with a flat list of inputs in order. Type attributes
  // and list lengths that `attrs` lacks are inferred from the inputs. On an
  // error the status keeps it and the result is empty.
  OpResult op(std::string_view op, const Inputs& inputs,
              AttrMap attrs = {}) const;
  // A Const, named `name` unless named() gives another name.
  Output constant(Tensor value, std::string_view name = "Const") const;
  // The Output of an Input: a literal becomes a Const of `dtype`, or of its own
  // type for kInvalid.
  Output resolve(const Input& input, DataType dtype = DataType::kInvalid,
                 std::string_view name = "Const") const;

 private:
  friend struct ScopeAccess;  // cond() and while_loop()

  std::string full_name(std::string_view name) const;
  Status check_input(const Output& output, std::string_view user,
                     size_t index) const;
  Result<Node*> add(std::string_view op, const Inputs& inputs,
                    AttrMap attrs) const;

  Result<const OpDef*> find_op(std::string_view op) const;
  Status check_attr_names(std::string_view op, const AttrMap& attrs) const;

  std::shared_ptr<BuilderState> state_;
  Context* context_ = nullptr;
  std::string prefix_;  // with the final slash
  std::string op_name_;
  std::string device_;
  AttrMap attrs_;
  std::vector<Node*> control_inputs_;
};

}  // namespace tagflow::graph
