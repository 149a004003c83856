// LayerOps: the ops that a layer node replaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/kernel.h"
#include "devices/kernels/product/layer_tail.h"
#include "devices/kernels/product/row_product.h"
#include "graph/graph.h"

namespace tagflow::devices {

// A product and the ops before and after it: Note [What is a layer] in
// graph/passes/layer.cpp. Each op has its own kernel, for a node that is
// internal to this. Thread-safe once it is built.
class LayerOps {
 public:
  // InvalidArgument if the node's attributes are not those of a layer.
  Status build(const KernelInfo& info);

  const graph::Node& product() const { return *product_.node; }
  // Whether the product has the attribute, and it is true.
  bool is_set(std::string_view flag) const;
  DataType dtype() const { return dtype_; }
  // Whether there are element-wise ops.
  bool has_tail() const { return tail_.node != nullptr; }
  // Whether the element-wise ops, if any, can run block by block.
  bool can_run_blocks() const { return !has_tail() || tiles_ != nullptr; }
  // Whether they can also run in place, with one output of the product's shape.
  bool is_in_place() const {
    return can_run_blocks() && segments_ == 1 && num_outputs_ == 1;
  }

  // The number of tensors that are multiplied: one, or the inputs of ConcatV2.
  int64_t num_parts() const { return 1 + num_more_; }
  const Tensor& part(const KernelContext& context, int64_t i) const;
  // The bias, or null if there is none; false if it is not a vector of
  // `outputs` elements. REQUIRES: dtype() is float.
  bool find_bias(const KernelContext& context, int64_t outputs,
                 const float*& bias) const;
  // Computes the layer from the product, block by block. False, and nothing was
  // done, if the element-wise ops need the whole product. REQUIRES:
  // can_run_blocks(), and `product` is its shape.
  Result<bool> compute_rows(KernelContext& context, const RowFactors& factors,
                            const Shape& product) const;
  // Allocates the outputs of the element-wise ops for a product of that shape.
  // False, and nothing was done, if they need the whole product. REQUIRES:
  // has_tail() and can_run_blocks().
  Result<bool> begin_tail(KernelContext& context, Shape product,
                          LayerTail& tail) const;
  void run_tail(const LayerTail& tail, const LayerTail::Values& values) const {
    tail.run(*tiles_, values);
  }

  // The cost of the product, in nanoseconds on one thread.
  double cost(const KernelContext& context, const Tensor& weights) const;
  // Runs all ops one by one, with the results and errors of separate nodes.
  Status compute(KernelContext& context, const Tensor& weights) const;

 private:
  // One of the ops.
  struct Stage {
    graph::Node* node = nullptr;  // null: there is none
    std::unique_ptr<Kernel> kernel;
  };
  using Strings = std::vector<std::string>;
  using Operands = std::vector<Tensor>;

  Result<graph::Endpoint> add_input();
  Status add_stage(Stage& stage, const std::string& name, std::string_view op,
                   std::span<const graph::Endpoint> inputs, AttrMap attrs = {});
  Status add_join(const std::string& name);
  Status add_product(const graph::Node& layer, const std::string& name);
  Status add_tail(const KernelInfo& info, Strings names, size_t num_others);

  std::span<const Tensor> others_of(const KernelContext& context) const;
  static Status run(const KernelContext& context, const Stage& stage,
                    std::span<Tensor> inputs, std::span<Tensor> outputs);

  graph::Graph graph_;
  Stage join_, product_, bias_, tail_;
  const FusedTiles* tiles_ = nullptr;  // of the tail, if it supports blocks
  DataType dtype_ = DataType::kInvalid;
  // The product's columns as the element-wise ops use them: segments of one
  // width, which is known if there are several.
  int64_t segments_ = 1, width_ = 0;
  int num_outputs_ = 1;
  int64_t num_more_ = 0;  // parts of the factor after the first
};

}  // namespace tagflow::devices
