// Runs kernels on variables, without an engine.
//
//   const Tensor table = make_variable("table", Tensor::vector<float>({1, 2}));
//   run_on_state("ScatterAdd", {table, indices, updates});
//   expect_close(value_of(table), ...);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/state/variable.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

// The handle of a new variable, which has the value if that is valid.
Tensor make_variable(const std::string& name, const Tensor& value);
Tensor make_variable(const std::string& name, DataType dtype,
                     const PartialShape& declared);
Variable& variable_of(const Tensor& handle);
// Not valid if it has none.
const Tensor& value_of(const Tensor& handle);

// Runs the op's CPU kernel on inputs of which those that are handles come from
// variables: by reference if the op takes one, or is a reader of references
// and no handle is wanted. If `in_shards`, loops are split into shards that
// run last first.
Result<Outputs> run_on_state(std::string_view op,
                             const std::vector<Tensor>& inputs,
                             AttrMap attrs = {}, bool in_shards = false);
// Fails the test case if it fails; the first output, if any.
Tensor must_run_on_state(std::string_view op, const std::vector<Tensor>& inputs,
                         AttrMap attrs = {});

}  // namespace tagflow::devices
