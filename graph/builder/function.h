// Functions: named subgraphs, which any graph code can call, also recursively.
//
//   define_function(s, {.name = "fib",
//                       .args = {{"n", DataType::kInt32, {}}},
//                       .results = {{DataType::kInt32, {}}},
//                       .body = [](const Scope& s, const Outputs& a) {
//     return cond(s, ops::less(s, a[0], 2),
//         [&](const Scope& s) -> Outputs { return ops::identity(s, a[0]); },
//         [&](const Scope& s) -> Outputs {
//           return ops::add(s, call(s, "fib", {ops::sub(s, a[0], 1)})[0],
//                           call(s, "fib", {ops::sub(s, a[0], 2)})[0]);
//         });
//   }});
//   Output y = call(s, "fib", {x})[0];
//
// A body can only use its arguments: it cannot capture other tensors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::graph {

struct ArgumentSpec {
  std::string name;
  DataType dtype = DataType::kInvalid;
  PartialShape shape = {};
};

struct ResultSpec {
  DataType dtype = DataType::kInvalid;
  // Callers may rely on this shape. If it does not follow from the body, each
  // call checks it.
  PartialShape shape = {};
};

struct FunctionSpec {
  std::string name;
  std::vector<ArgumentSpec> args;
  std::vector<ResultSpec> results;
  // Builds the body and returns its results.
  std::function<Outputs(const Scope&, const Outputs& args)> body;
};

// Adds a function to the library of the scope's graph. Its body may call itself
// and any function of the library. The scope fails if the name is taken, or the
// results do not match the specification.
void define_function(const Scope& scope, const FunctionSpec& function);
// As define_function(), for several functions, whose bodies may call all of
// them.
void define_functions(const Scope& scope,
                      const std::vector<FunctionSpec>& functions);

// Adds a node that calls a function of the library, and returns its outputs.
// Literal inputs take the types of the arguments.
Outputs call(const Scope& scope, std::string_view function,
             const Inputs& inputs);

}  // namespace tagflow::graph
