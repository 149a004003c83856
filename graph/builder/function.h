// Functions: subgraphs with a name, called from anywhere, themselves included.
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
// A body sees its arguments only: it cannot capture tensors from around it.
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
  // What callers may rely on. Where it does not follow from the body, it is
  // checked in each call.
  PartialShape shape = {};
};

struct FunctionSpec {
  std::string name;
  std::vector<ArgumentSpec> args;
  std::vector<ResultSpec> results;
  // Builds the body, of which it returns the results.
  std::function<Outputs(const Scope&, const Outputs& args)> body;
};

// Adds a function to the library of the scope's graph. Its body may call it,
// and all that the library has. The scope fails where the name is taken, or
// the results are not what the specification says.
void define_function(const Scope& scope, const FunctionSpec& function);
// The same of several functions, whose bodies may call all of them.
void define_functions(const Scope& scope,
                      const std::vector<FunctionSpec>& functions);

// A node that calls a function of the library; returns its outputs. Literal
// inputs take the types of the arguments.
Outputs call(const Scope& scope, std::string_view function,
             const Inputs& inputs);

}  // namespace tagflow::graph
