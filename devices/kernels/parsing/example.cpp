// ParseExample, ParseExampleV2, ParseSingleExample.
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/feature_set.h"

namespace tagflow::devices {

namespace {

using Types = std::vector<DataType>;

// The kernels differ in where the keys are.
class ParseExampleKernel final : public BytesKernel {
 public:
  explicit ParseExampleKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.5),
        is_single_(info.node().op() == "ParseSingleExample"),
        is_second_(info.node().op() == "ParseExampleV2"),
        sparse_types_(attr_of<Types>(info, "sparse_types")),
        dense_types_(attr_of<Types>(info, "Tdense")),
        ragged_types_(attr_of<Types>(info, "ragged_value_types")),
        split_types_(attr_of<Types>(info, "ragged_split_types")),
        dense_shapes_(attr_of<std::vector<PartialShape>>(info, "dense_shapes")),
        sparse_keys_(attr_of<std::vector<std::string>>(info, "sparse_keys")),
        dense_keys_(attr_of<std::vector<std::string>>(info, "dense_keys")) {}

  Status compute(KernelContext& context) const override {
    FeatureSet features(context, 0);
    if (is_single_) {
      TAGFLOW_RETURN_IF_ERROR(features.add_sparse(sparse_keys_, sparse_types_));
      TAGFLOW_RETURN_IF_ERROR(
          features.add_dense(dense_keys_, dense_types_, dense_shapes_, 1));
    } else if (is_second_) {
      TAGFLOW_RETURN_IF_ERROR(add_from_vectors(context, features));
    } else {
      const int first_dense = 2 + int(sparse_types_.size());
      TAGFLOW_ASSIGN(const auto sparse,
                     key_inputs(context, 2, sparse_types_.size()));
      TAGFLOW_ASSIGN(const auto dense,
                     key_inputs(context, first_dense, dense_types_.size()));
      TAGFLOW_RETURN_IF_ERROR(features.add_sparse(sparse, sparse_types_));
      TAGFLOW_RETURN_IF_ERROR(
          features.add_dense(dense, dense_types_, dense_shapes_,
                             first_dense + int(dense_types_.size())));
    }
    TAGFLOW_ASSIGN(const SerializedBatch batch,
                   SerializedBatch::make(context, is_single_ ? -1 : 1));
    if (batch.is_single() != is_single_ && !is_second_)
      return context.fail("serialized must be a {}, not {}",
                          is_single_ ? "scalar" : "vector",
                          context.input(0).describe());
    return parse_features(context, batch, features);
  }

 private:
  Status add_from_vectors(const KernelContext& context,
                          FeatureSet& features) const {
    TAGFLOW_ASSIGN(const auto sparse, keys_input(context, 2));
    TAGFLOW_ASSIGN(const auto dense, keys_input(context, 3));
    TAGFLOW_ASSIGN(const auto ragged, keys_input(context, 4));
    TAGFLOW_RETURN_IF_ERROR(features.add_sparse(sparse, sparse_types_));
    TAGFLOW_RETURN_IF_ERROR(
        features.add_dense(dense, dense_types_, dense_shapes_, 5));
    return features.add_ragged(FeatureSet::Ragged::kExample, ragged,
                               ragged_types_, split_types_);
  }

  const bool is_single_, is_second_;
  const Types sparse_types_, dense_types_, ragged_types_, split_types_;
  const std::vector<PartialShape> dense_shapes_;
  const std::vector<std::string> sparse_keys_, dense_keys_;
};

}  // namespace

void register_parsing_example_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"ParseExample", "ParseExampleV2", "ParseSingleExample"})
    registry.add<ParseExampleKernel>(op);
}

}  // namespace tagflow::devices
