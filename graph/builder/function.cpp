#include "graph/builder/function.h"

#include "graph/builder/ops_control_flow.h"
#include "graph/function.h"
#include "graph/functions/make_function.h"
#include "graph/functions/ports.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

Status about(const FunctionSpec& spec, Status status) {
  return std::move(status).with_prefix(
      fmt::format("[function] \"{}\": ", spec.name));
}

// Gives outputs their declared shapes, so that callers know them.
ShapeFn declared(const std::vector<ResultSpec>& results) {
  return [results](ShapeContext& c) -> Status {
    for (int i = 0; i < c.num_outputs(); ++i)
      c.set_output(i, results[size_t(i)].shape);
    return {};
  };
}

// A preliminary definition, so that bodies can call the function.
FunctionDef promise(const FunctionSpec& spec) {
  FunctionDef function;
  function.signature.name = spec.name;
  for (const ArgumentSpec& arg : spec.args)
    function.signature.inputs.push_back(one_tensor(arg.name, arg.dtype));
  for (size_t i = 0; i < spec.results.size(); ++i)
    function.signature.outputs.push_back(
        one_tensor(fmt::format("result_{}", i), spec.results[i].dtype));
  function.signature.shape_fn = declared(spec.results);
  return function;
}

// The result with its declared shape.
Result<Output> checked(const Scope& s, const FunctionSpec& spec, size_t i,
                       const Output& output) {
  const ResultSpec& wanted = spec.results[i];
  if (!output.has_tensor())
    return invalid_argument("result {} is not a tensor", i);
  if (output.dtype() != wanted.dtype ||
      !wanted.shape.compatible(output.shape()))
    return invalid_argument("result {} is {}{}, declared as {}{}", i,
                            dtype_name(output.dtype()),
                            output.shape().to_string(),
                            dtype_name(wanted.dtype), wanted.shape.to_string());
  if (wanted.shape.merge(output.shape()).value() == output.shape())
    return output;
  return Output(s.op("EnsureShape", {output}, {{"shape", wanted.shape}}));
}

Result<FunctionDef> build(const FunctionSpec& spec,
                          const FunctionLibrary& library) {
  Graph graph;
  graph.library() = library;
  const Scope s(graph);
  Outputs args;
  std::vector<Endpoint> arg_endpoints;
  for (const ArgumentSpec& arg : spec.args) {
    args.push_back(ops::placeholder(s.named(arg.name), arg.dtype, arg.shape));
    arg_endpoints.push_back(args[args.size() - 1].endpoint());
  }
  if (!spec.body) return invalid_argument("it has no body");
  TAGFLOW_RETURN_IF_ERROR(s.status());
  const Outputs made = spec.body(s, args);
  TAGFLOW_RETURN_IF_ERROR(s.status());
  if (made.size() != spec.results.size())
    return invalid_argument("the body returns {} results, {} are declared",
                            made.size(), spec.results.size());
  std::vector<Endpoint> results;
  for (size_t i = 0; i < made.size(); ++i) {
    TAGFLOW_ASSIGN(const Output output, checked(s, spec, i, made[i]));
    results.push_back(output.endpoint());
  }
  TAGFLOW_RETURN_IF_ERROR(s.status());
  TAGFLOW_ASSIGN(FunctionDef function,
                 make_function(spec.name, graph, arg_endpoints, results));
  function.signature.shape_fn = declared(spec.results);
  return function;
}

Status define(const Scope& scope, const std::vector<FunctionSpec>& specs) {
  FunctionLibrary& library = scope.graph().library();
  FunctionLibrary promised = library;
  for (const FunctionSpec& spec : specs) {
    if (OpRegistry::global().find_or_null(spec.name) != nullptr)
      return about(spec, invalid_argument("an op has this name"));
    TAGFLOW_RETURN_IF_ERROR(promised.add(promise(spec)));
  }
  for (const FunctionSpec& spec : specs) {
    Result<FunctionDef> function = build(spec, promised);
    if (!function.ok()) return about(spec, std::move(function).status());
    TAGFLOW_RETURN_IF_ERROR(library.add(std::move(function).value()));
  }
  return {};
}

}  // namespace

void define_functions(const Scope& scope,
                      const std::vector<FunctionSpec>& functions) {
  if (!scope.ok()) return;
  Status status = define(scope, functions);
  if (!status.ok()) scope.fail(std::move(status));
}

void define_function(const Scope& scope, const FunctionSpec& function) {
  define_functions(scope, {function});
}

Outputs call(const Scope& scope, std::string_view function,
             const Inputs& inputs) {
  if (!scope.ok()) return {};
  if (scope.graph().library().find(function) == nullptr) {
    scope.fail(error(Code::kNotFound,
                     "[call] no function \"{}\" in the library", function));
    return {};
  }
  return ops::all_outputs(scope.op(function, inputs));
}

}  // namespace tagflow::graph
