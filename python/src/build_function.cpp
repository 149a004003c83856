// Functions of a graph's library, whose bodies are functions of Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "graph/builder/function.h"
#include "graph/function.h"
#include "python/src/build_scope.h"
#include "python/src/convert.h"
#include "python/src/error.h"

namespace tagflow::python {
namespace {

namespace nb = nanobind;

using graph::FunctionDef;
using graph::Outputs;
using graph::Scope;

// A body while it is built; then its handles are refused.
class OpenBody {
 public:
  explicit OpenBody(const Scope& scope)
      : body_(std::make_shared<Body>(Body{nb::none(), &scope.graph()})),
        scope_{scope, body_} {}
  ~OpenBody() { body_->graph = nullptr; }
  OpenBody(const OpenBody&) = delete;
  OpenBody& operator=(const OpenBody&) = delete;
  const ScopeObject& scope() const { return scope_; }

 private:
  BodyPtr body_;
  ScopeObject scope_;
};

// The functions that a body has defined for itself: those of its library that
// `outer` lacks. A function without results is a promise of one that is being
// defined.
std::vector<FunctionDef> defined_within(const graph::FunctionLibrary& library,
                                        const graph::FunctionLibrary& outer) {
  std::vector<FunctionDef> found;
  for (const FunctionDef* function : library.functions())
    if (!function->ret.empty() && outer.find(function->name()) == nullptr)
      found.push_back(*function);
  return found;
}

DataType type_of(nb::handle dtype) {
  const DataType found = to_dtype(dtype.ptr());
  if (found == DataType::kInvalid) throw nb::python_error();
  return found;
}

void define(const ScopeObject& self, const std::string& name,
            const std::vector<std::string>& names, const nb::list& args,
            const nb::list& results, const nb::object& body) {
  const Scope& scope = self.open();
  graph::FunctionSpec spec;
  spec.name = name;
  for (size_t i = 0; i < names.size() && i < args.size(); ++i) {
    const auto arg = nb::cast<nb::tuple>(args[i]);
    spec.args.push_back({names[i], type_of(arg[0]), to_partial_shape(arg[1])});
  }
  for (const nb::handle item : results) {
    const auto result = nb::cast<nb::tuple>(item);
    spec.results.push_back({type_of(result[0]), to_partial_shape(result[1])});
  }
  std::exception_ptr kept;
  std::vector<FunctionDef> inner;
  spec.body = [&](const Scope& in, const Outputs& values) -> Outputs {
    try {
      const OpenBody open(in);
      const ScopeObject& here = open.scope();
      const Outputs made = here.take_all(body(here, here.give_all(values)));
      inner = defined_within(in.graph().library(), scope.graph().library());
      return made;
    } catch (...) {
      kept = std::current_exception();
      in.fail(error(Code::kAborted, "[trace] a function of Python raised"));
      return {};
    }
  };
  graph::define_function(scope, spec);
  if (kept != nullptr) std::rethrow_exception(kept);
  check(scope.status());
  // Both may call each other: now the outer one is known, too.
  for (FunctionDef& function : inner)
    if (function.name() != name)
      check(scope.graph().library().add(std::move(function)));
}

nb::list call(const ScopeObject& self, const std::string& name,
              nb::handle inputs) {
  const Outputs outputs = graph::call(self.open(), name, self.take_all(inputs));
  check(self.scope.status());
  return self.give_all(outputs);
}

}  // namespace

void bind_build_functions(nb::class_<ScopeObject>& scope) {
  scope
      .def("define", &define, nb::arg("name"), nb::arg("names"),
           nb::arg("args"), nb::arg("results"), nb::arg("body"),
           "Adds a function to the library: args and results are pairs of a "
           "type and a shape; the body takes a scope and a list.")
      .def("call", &call, nb::arg("name"), nb::arg("inputs"))
      .def(
          "free_function_name",
          [](const ScopeObject& self, const std::string& name) {
            return graph::free_function_name(self.open().graph().library(),
                                             name);
          },
          nb::arg("name"))
      .def(
          "has_function",
          [](const ScopeObject& self, const std::string& name) {
            return self.open().graph().library().find(name) != nullptr;
          },
          nb::arg("name"));
}

}  // namespace tagflow::python
