// The implementation of VariableScope::get(). Internal to the builder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/builder/scoped_variable_data.h"
#include "graph/builder/variable_scope.h"

namespace tagflow::graph {

// Makes one variable, part after part.
class VariableMaker {
 public:
  // `options` must outlive it.
  VariableMaker(const Scope& s, std::string name, const Shape& shape,
                const VariableOptions& options);

  // The number of parts along each dimension; empty without a partitioner.
  // InvalidArgument if the partitioner's result is invalid.
  static Result<std::vector<int64_t>> partition(const std::string& name,
                                                const Shape& shape,
                                                const VariableOptions& options);
  // InvalidArgument unless the variable matches the request.
  static Status check_same(const ScopedVariable& variable, const Shape& shape,
                           const VariableOptions& options);

  // Call one of the two.
  Result<ScopedVariable> make_value(const VariableScope::ValueFn& value);
  Result<ScopedVariable> make();

 private:
  Status add_part(std::vector<int64_t> offset, const Shape& shape);
  Result<Output> initial_value(const VariablePart& part);
  ScopedVariable done() const;

  const Scope root_;
  const VariableOptions& options_;
  const std::shared_ptr<ScopedVariable::Data> data_;
};

}  // namespace tagflow::graph
