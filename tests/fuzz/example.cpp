// Fuzzes the parsers of Examples and SequenceExamples: one string is taken as
// each. Whatever is parsed has outputs of consistent sizes.
#include <cstdlib>
#include <string>
#include <vector>

#include "devices/kernels/parsing/feature_set.h"
#include "graph/graph.h"

namespace {

using namespace tagflow;           // NOLINT: a fuzz target
using namespace tagflow::devices;  // NOLINT

using Strings = std::vector<std::string>;
using Types = std::vector<DataType>;

const Strings kKeys = {"s", "f", "i"};
const Types kTypes = {DataType::kString, DataType::kFloat, DataType::kInt64};
const std::vector<PartialShape> kShapes = {{-1}, {1}, {-1, 2}};
const Types kSplits(3, DataType::kInt32);

// Of the outputs of the features, and then of the lists.
Types output_types() {
  const Types numbers(3, DataType::kInt64);
  Types types;
  const auto add = [&](const std::vector<Types>& groups) {
    for (const Types& group : groups)
      types.insert(types.end(), group.begin(), group.end());
  };
  // Sparse, dense and ragged ones.
  add({numbers, kTypes, numbers, kTypes, kTypes, kSplits});
  add({numbers, kTypes, numbers, kTypes, kSplits, kSplits});
  return types;
}

void parse(const std::string& bytes, bool is_single) {
  static graph::Graph graph;
  // An op whose outputs have any types.
  static const graph::Node* const node =
      *graph.add("node", "Unstage", {}, {{"dtypes", output_types()}});
  std::vector<Tensor> inputs = {
      is_single ? Tensor::scalar(bytes)
                : Tensor::vector<std::string>({bytes, bytes}),
      Tensor::scalar(""), Tensor::vector<float>({0}),
      Tensor::scalar<int64_t>(0)};
  std::vector<Tensor> outputs(node->output_dtypes().size());
  StepInfo step;
  Tag tag;
  KernelContext context(node, inputs, outputs, &step, &tag);
  const auto batch = SerializedBatch::make(context, -1);
  if (!batch.ok()) std::abort();
  FeatureSet features(context, 0);
  if (!features.add_sparse(kKeys, kTypes).ok() ||
      !features.add_dense(kKeys, kTypes, kShapes, 1).ok() ||
      !features.add_ragged(FeatureSet::Ragged::kExample, kKeys, kTypes, kSplits)
           .ok())
    std::abort();
  FeatureSet lists(context, features.next_port());
  if (!lists.add_sparse(kKeys, kTypes).ok() ||
      !lists.add_ragged(FeatureSet::Ragged::kList, kKeys, kTypes, kSplits)
           .ok() ||
      size_t(lists.next_port()) != outputs.size())
    std::abort();
  for (const bool is_list : {false, true}) {
    const FeatureSet& wanted = is_list ? lists : features;
    const Status status = is_list ? parse_feature_lists(context, *batch, wanted)
                                  : parse_features(context, *batch, wanted);
    if (!status.ok()) continue;
    for (const FeatureSpec& spec : wanted.specs()) {
      if (spec.form != FeatureSpec::Form::kSparse) continue;
      const int64_t values = outputs[size_t(spec.values)].num_elements();
      if (outputs[size_t(spec.indices)].dim(0) != values) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes, true);
  parse(bytes, false);
  return 0;
}
