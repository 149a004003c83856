// What Python builds graphs with: scopes and outputs of graph/builder/.
//
// The functions of the module are thin: the package's Python adds what users
// see. All of them REQUIRE that the thread holds the GIL, and throw.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/attr.h"
#include "graph/builder/output.h"
#include "graph/builder/scope.h"
#include "graph/op_def.h"

namespace tagflow::python {

// Note [Bodies]
// Scopes and outputs point into a graph: a tagflow.Graph, or the body of a
// function, whose graph lives only while the body is built. All handles of one
// graph share a Body. It keeps a tagflow.Graph alive, and it is closed when a
// function's body is finished; then its handles are refused.
struct Body {
  nanobind::object owner;         // the tagflow.Graph, if it is one
  graph::Graph* graph = nullptr;  // null: closed
};
using BodyPtr = std::shared_ptr<Body>;

// A tensor, or an operation, of a graph.
struct OutputObject {
  graph::Output output;
  BodyPtr body;
};

// A scope of a graph. It never has a failed status for long: a function that
// makes it fail throws that error.
struct ScopeObject {
  graph::Scope scope;
  BodyPtr body;

  // The scope. Throws if its body is closed, or an earlier error has left the
  // graph incomplete.
  const graph::Scope& open() const;
  // The output; throws unless it is of this graph.
  graph::Output take(nanobind::handle object) const;
  graph::Outputs take_all(nanobind::handle list) const;
  nanobind::object give(const graph::Output& output) const;
  nanobind::list give_all(const graph::Outputs& outputs) const;
  ScopeObject with(graph::Scope other) const {
    return {std::move(other), body};
  }
};

// Calls functions of Python for the builder, which knows no exceptions: the
// first one is kept, the scope fails, and finish() throws it again.
class Callbacks {
 public:
  explicit Callbacks(const ScopeObject& scope) : scope_(scope) {}

  // f(scope object); on an exception, and after one, a default value.
  template <class F>
  auto run(const graph::Scope& in, const F& f)
      -> decltype(f(std::declval<const ScopeObject&>())) {
    if (kept_ != nullptr || !in.ok()) return {};
    const ScopeObject inner = scope_.with(in);
    try {
      return f(inner);
    } catch (...) {
      kept_ = std::current_exception();
      in.fail(error(Code::kAborted, "[trace] a function of Python raised"));
      return {};
    }
  }
  // Throws the exception, or the error of the scope.
  void finish() const;

 private:
  const ScopeObject& scope_;
  std::exception_ptr kept_;
};

// The attributes in a dict, or none; `def` says which types they have.
AttrMap attrs_of(const graph::OpDef& def, nanobind::handle dict);
// The definition of an op, or of a function of the graph; throws.
const graph::OpDef& find_op(const graph::Graph& graph, const std::string& name);

void bind_build_control(nanobind::class_<ScopeObject>& scope);
void bind_build_functions(nanobind::class_<ScopeObject>& scope);
void bind_build_gradients(nanobind::class_<ScopeObject>& scope);
void bind_build_dispatch(nanobind::module_& module);

}  // namespace tagflow::python
