// FeatureSet: the features that a node wants of each Example, and where they
// go.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "devices/kernel.h"
#include "devices/kernels/parsing/key_table.h"
#include "devices/kernels/parsing/serialized_batch.h"

namespace tagflow::devices {

// One feature, and its outputs.
struct FeatureSpec {
  enum class Form : uint8_t {
    kSparse,  // indices, values, shape
    kDense,   // the same number of values in each Example
    kPadded,  // values, with a fallback where an Example has fewer
    kRagged,  // values, row splits
  };

  Form form = Form::kDense;
  DataType type = DataType::kInvalid;
  size_t key = 0;   // its number in the table of keys
  int values = 0;   // the port of its values
  int indices = 0;  // kSparse; of lists that are ragged, the splits of steps
  int shape = 0;    // kSparse
  int splits = 0;   // kRagged; of lists that are dense, the lengths, or -1
  DataType split_type = DataType::kInt64;
  // kRagged: one Example has the number of its rows as splits, not none.
  bool counts_single = false;
  // kDense and kPadded: the dimensions of its values, for kPadded without the
  // first one, and how many these are.
  Shape row;
  int64_t stride = 1;
  // kDense: the values where the feature is missing, which is an error if there
  // are none. kPadded: one value.
  Tensor fallback;
  bool may_be_missing = true;  // of lists
};

// Adds features group by group, in the order of the node's outputs. Errors are
// the kernel's.
class FeatureSet {
 public:
  using Keys = std::span<const std::string>;
  using Types = std::span<const DataType>;
  using Shapes = std::span<const PartialShape>;

  // `first_port` is the first output. REQUIRES: the context outlives this.
  FeatureSet(const KernelContext& context, int first_port)
      : context_(context), next_(first_port) {}

  // A group has as many keys as types.
  Status add_sparse(Keys keys, Types types);
  // The fallbacks are inputs from `first_fallback` on.
  Status add_dense(Keys keys, Types types, Shapes shapes, int first_fallback);
  // What is ragged: features of an Example, those of the context of a
  // SequenceExample, or its lists.
  enum class Ragged : uint8_t { kExample, kContext, kList };
  Status add_ragged(Ragged kind, Keys keys, Types types, Types split_types);
  // Lists of features, with lengths if `has_lengths`.
  Status add_dense_lists(Keys keys, Types types, Shapes shapes,
                         bool has_lengths);

  const KernelContext& context() const { return context_; }
  const KeyTable& keys() const { return keys_; }
  std::span<FeatureSpec> specs() { return specs_; }
  std::span<const FeatureSpec> specs() const { return specs_; }
  std::string_view key_of(const FeatureSpec& spec) const {
    return keys_[spec.key];
  }
  // The output behind those of the features.
  int next_port() const { return next_; }

 private:
  Status check_counts(Keys keys, Types types) const;

  const KernelContext& context_;
  KeyTable keys_;
  std::vector<FeatureSpec> specs_;
  int next_;
};

// The keys in input `input`: a vector. InvalidArgument for another shape.
Result<std::span<const std::string>> keys_input(const KernelContext& context,
                                                int input);
// The keys in `count` inputs from `first` on, each a scalar.
Result<std::vector<std::string>> key_inputs(const KernelContext& context,
                                            int first, size_t count);

// Parses the features in field 1 of the messages, and sets the outputs.
Status parse_features(KernelContext& context, const SerializedBatch& batch,
                      const FeatureSet& features);
// Parses the lists of features in field 2 of the messages.
Status parse_feature_lists(KernelContext& context, const SerializedBatch& batch,
                           const FeatureSet& lists);

// Sets an output to the row splits of a feature. One Example has none of these,
// or a scalar. InvalidArgument if a number exceeds the type.
Status set_splits(KernelContext& context, const FeatureSpec& spec, int port,
                  std::span<const int64_t> starts, bool is_single);
// Sets an output to a vector of numbers.
Status set_numbers(KernelContext& context, int port,
                   std::initializer_list<int64_t> numbers);

}  // namespace tagflow::devices
