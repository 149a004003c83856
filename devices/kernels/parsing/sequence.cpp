// ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample.
#include <algorithm>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/feature_set.h"

namespace tagflow::devices {

namespace {

using Types = std::vector<DataType>;
using Strings = std::vector<std::string>;
using Shapes = std::vector<PartialShape>;

// The keys of all groups of features.
struct SequenceKeys {
  Strings context_sparse, context_dense, context_ragged;
  Strings list_sparse, list_dense, list_ragged;
};

Result<Strings> key_vector(const KernelContext& context, int input) {
  TAGFLOW_ASSIGN(const auto keys, keys_input(context, input));
  return Strings(keys.begin(), keys.end());
}

// The kernels differ in the inputs and attributes that have the keys.
class ParseSequenceKernel final : public BytesKernel {
 public:
  explicit ParseSequenceKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.5),
        is_single_(info.node().op() == "ParseSingleSequenceExample"),
        is_second_(info.node().op() == "ParseSequenceExampleV2"),
        context_sparse_(attr_of<Types>(info, "context_sparse_types")),
        context_dense_(attr_of<Types>(info, "Tcontext_dense")),
        context_ragged_(attr_of<Types>(info, "context_ragged_value_types")),
        context_splits_(attr_of<Types>(info, "context_ragged_split_types")),
        list_sparse_(attr_of<Types>(info, "feature_list_sparse_types")),
        list_dense_(attr_of<Types>(info, "feature_list_dense_types")),
        list_ragged_(attr_of<Types>(info, "feature_list_ragged_value_types")),
        list_splits_(attr_of<Types>(info, "feature_list_ragged_split_types")),
        context_shapes_(attr_of<Shapes>(info, "context_dense_shapes")),
        list_shapes_(attr_of<Shapes>(info, "feature_list_dense_shapes")),
        assumed_(attr_of<Strings>(info,
                                  "feature_list_dense_missing_assumed_empty")) {
    keys_.context_sparse = attr_of<Strings>(info, "context_sparse_keys");
    keys_.context_dense = attr_of<Strings>(info, "context_dense_keys");
    keys_.list_sparse = attr_of<Strings>(info, "feature_list_sparse_keys");
    keys_.list_dense = attr_of<Strings>(info, "feature_list_dense_keys");
  }

  Status compute(KernelContext& context) const override {
    SequenceKeys keys = keys_;
    int first_fallback = 2, names = 1;
    if (is_second_) {
      TAGFLOW_RETURN_IF_ERROR(read_vectors(context, keys));
      first_fallback = 9;
    } else if (is_single_) {
      TAGFLOW_ASSIGN(first_fallback, read_scalars(context, keys));
      names = context.num_inputs() - 1;
    }
    FeatureSet features(context, 0);
    TAGFLOW_RETURN_IF_ERROR(
        features.add_sparse(keys.context_sparse, context_sparse_));
    TAGFLOW_RETURN_IF_ERROR(features.add_dense(
        keys.context_dense, context_dense_, context_shapes_, first_fallback));
    TAGFLOW_RETURN_IF_ERROR(
        features.add_ragged(FeatureSet::Ragged::kContext, keys.context_ragged,
                            context_ragged_, context_splits_));
    FeatureSet lists(context, features.next_port());
    TAGFLOW_RETURN_IF_ERROR(lists.add_sparse(keys.list_sparse, list_sparse_));
    const size_t first_dense = lists.specs().size();
    TAGFLOW_RETURN_IF_ERROR(lists.add_dense_lists(keys.list_dense, list_dense_,
                                                  list_shapes_, !is_single_));
    TAGFLOW_RETURN_IF_ERROR(
        allow_missing(context, keys, lists.specs().subspan(first_dense)));
    TAGFLOW_RETURN_IF_ERROR(lists.add_ragged(FeatureSet::Ragged::kList,
                                             keys.list_ragged, list_ragged_,
                                             list_splits_));
    TAGFLOW_ASSIGN(const SerializedBatch batch,
                   SerializedBatch::make(context, names));
    if (batch.is_single() != is_single_ && !is_second_)
      return context.fail("serialized must be a {}, not {}",
                          is_single_ ? "scalar" : "vector",
                          context.input(0).describe());
    TAGFLOW_RETURN_IF_ERROR(parse_features(context, batch, features));
    return parse_feature_lists(context, batch, lists);
  }

 private:
  static Status read_vectors(const KernelContext& context, SequenceKeys& keys) {
    TAGFLOW_ASSIGN(keys.context_sparse, key_vector(context, 2));
    TAGFLOW_ASSIGN(keys.context_dense, key_vector(context, 3));
    TAGFLOW_ASSIGN(keys.context_ragged, key_vector(context, 4));
    TAGFLOW_ASSIGN(keys.list_sparse, key_vector(context, 5));
    TAGFLOW_ASSIGN(keys.list_dense, key_vector(context, 6));
    TAGFLOW_ASSIGN(keys.list_ragged, key_vector(context, 7));
    return {};
  }

  // Returns the first input behind the keys.
  Result<int> read_scalars(const KernelContext& context,
                           SequenceKeys& keys) const {
    int next = 2;
    const auto read = [&](Strings& group, const Types& types) -> Status {
      TAGFLOW_ASSIGN(group, key_inputs(context, next, types.size()));
      next += int(types.size());
      return {};
    };
    TAGFLOW_RETURN_IF_ERROR(read(keys.context_sparse, context_sparse_));
    TAGFLOW_RETURN_IF_ERROR(read(keys.context_dense, context_dense_));
    TAGFLOW_RETURN_IF_ERROR(read(keys.list_sparse, list_sparse_));
    TAGFLOW_RETURN_IF_ERROR(read(keys.list_dense, list_dense_));
    return next;
  }

  // Marks the dense lists that are empty where they are missing.
  Status allow_missing(const KernelContext& context, const SequenceKeys& keys,
                       std::span<FeatureSpec> dense) const {
    if (is_second_) {
      const Tensor& flags = context.input(8);
      if (flags.rank() != 1 || flags.num_elements() != int64_t(dense.size()))
        return context.fail(
            "feature_list_dense_missing_assumed_empty must have an element for "
            "each of {} lists, but is {}",
            dense.size(), flags.describe());
      for (size_t i = 0; i < dense.size(); ++i)
        dense[i].may_be_missing = flags.flat<bool>()[i];
      return {};
    }
    std::span<const std::string> assumed = assumed_;
    if (is_single_) {
      TAGFLOW_ASSIGN(assumed, keys_input(context, 1));
    }
    for (size_t i = 0; i < dense.size(); ++i)
      dense[i].may_be_missing =
          std::ranges::count(assumed, keys.list_dense[i]) > 0;
    return {};
  }

  const bool is_single_, is_second_;
  const Types context_sparse_, context_dense_, context_ragged_, context_splits_;
  const Types list_sparse_, list_dense_, list_ragged_, list_splits_;
  const Shapes context_shapes_, list_shapes_;
  const Strings assumed_;
  SequenceKeys keys_;  // those of attributes
};

}  // namespace

void register_parsing_sequence_kernels(KernelRegistry& registry) {
  for (const char* op : {"ParseSequenceExample", "ParseSequenceExampleV2",
                         "ParseSingleSequenceExample"})
    registry.add<ParseSequenceKernel>(op);
}

}  // namespace tagflow::devices
