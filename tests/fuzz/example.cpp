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
constexpr int kOutputs = 64;

void parse(const std::string& bytes, bool is_single) {
  static graph::Graph graph;
  static const graph::Node* const node = *graph.add("node", "NoOp", {});
  std::vector<Tensor> inputs = {
      is_single ? Tensor::scalar(bytes)
                : Tensor::vector<std::string>({bytes, bytes}),
      Tensor::scalar(""), Tensor::vector<float>({0}),
      Tensor::scalar<int64_t>(0)};
  std::vector<Tensor> outputs(kOutputs);
  StepInfo step;
  Tag tag;
  KernelContext context(node, inputs, outputs, &step, &tag);
  const auto batch = SerializedBatch::make(context, -1);
  if (!batch.ok()) std::abort();
  const Types splits(3, DataType::kInt32);
  FeatureSet features(context, 0);
  FeatureSet lists(context, 0);
  if (!features.add_sparse(kKeys, kTypes).ok() ||
      !features.add_dense(kKeys, kTypes, kShapes, 1).ok() ||
      !features.add_ragged(FeatureSet::Ragged::kExample, kKeys, kTypes, splits)
           .ok() ||
      !lists.add_sparse(kKeys, kTypes).ok() ||
      !lists.add_ragged(FeatureSet::Ragged::kList, kKeys, kTypes, splits).ok())
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
