// Runs one kernel without an engine, for tests of kernels.
//
//   expect_close(run_op("AddV2", {Tensor::vector<float>({1, 2}),
//                                 Tensor::scalar(1.0f)}),
//                Tensor::vector<float>({2, 3}));
//   expect_error(run_op("AddV2", {a, b}), Code::kInvalidArgument, "[2]");
#pragma once

#include <string_view>
#include <vector>

#include "devices/kernel.h"

namespace tagflow::devices {

using Outputs = std::vector<Tensor>;

// Builds a node of `op` over placeholders of the inputs' types and unknown
// shapes, so that the kernel's own checks meet the inputs; makes its CPU
// kernel and runs it. Type and number attributes are taken from the inputs
// if `attrs` leaves them out. Checks on the way, Internal if it fails:
// - outputs have the node's output types and are allocated;
// - shape inference over constants accepts what the kernel accepted, and the
//   outputs have the shapes that it infers;
// - an op that is not stateful gives the same results again with unshared
//   inputs, which it may overwrite, and with its loops split into shards.
// `step` is for kernels that use resources; by default there are none. An
// asynchronous kernel must finish within its call.
Result<Outputs> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                       AttrMap attrs = {}, const StepInfo* step = nullptr);

// Like run_op, of inputs that the kernel accepts while shape inference, if
// they are constants, refuses them, as TensorFlow does: Internal if it does
// not.
Result<Outputs> run_op_beyond_inference(std::string_view op,
                                        const std::vector<Tensor>& inputs,
                                        AttrMap attrs = {});

// Like run_op, for a kernel on constant inputs: what shape inference says of
// the outputs, or why it refuses the node.
Result<std::vector<PartialShape>> infer_op(std::string_view op,
                                           const std::vector<Tensor>& inputs,
                                           AttrMap attrs = {});

// Fail the test case if the outputs differ. Types and shapes must agree;
// floating and complex elements may differ by `tolerance`, absolutely below 1
// and relatively above, and 0 stands for 4 units in the last place of their
// type. NaN equals NaN, an infinity only itself. Other types must be equal;
// variants must describe themselves alike.
void expect_close(const Tensor& actual, const Tensor& expected,
                  double tolerance = 0);
// As above, for an op's first output.
void expect_close(const Result<Outputs>& actual, const Tensor& expected,
                  double tolerance = 0);
// Fails the test case unless the result is an error of that code whose message
// contains `text`.
void expect_error(const Status& status, Code code, std::string_view text);
template <class T>
void expect_error(const Result<T>& result, Code code, std::string_view text) {
  expect_error(result.status(), code, text);
}

// If two tensors differ, in words; "" if they are close.
std::string difference(const Tensor& actual, const Tensor& expected,
                       double tolerance);

}  // namespace tagflow::devices
