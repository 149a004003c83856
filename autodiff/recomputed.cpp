// Values of an iteration that its gradient computes again instead of saving.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "autodiff/loop_region.h"

namespace tagflow::autodiff {

namespace {

// Cheap element-wise ops whose results are bit-identical to those of the
// forward run.
bool is_cheap(const Node& node) {
  static const std::unordered_set<std::string_view> kCheap{
      "Add",        "AddV2",     "Cast",         "ConcatV2",   "Equal",
      "ExpandDims", "FloorDiv",  "FloorMod",     "Greater",    "GreaterEqual",
      "Less",       "LessEqual", "LogicalOr",    "LogicalAnd", "LogicalNot",
      "Maximum",    "Minimum",   "Mul",          "Neg",        "NotEqual",
      "Pack",       "Reshape",   "StridedSlice", "Sub"};
  return kCheap.contains(node.op()) && node.num_outputs() == 1;
}

// The types of indices, sizes and predicates.
bool is_index(DataType dtype) {
  return is_integer(dtype) || dtype == DataType::kBool;
}

}  // namespace

bool BodyRegion::is_at_hand(const Endpoint& tensor, int depth) {
  const Endpoint source = value_source(tensor);
  if (source.node->is_const() || has_value(source) || counter_at(source))
    return true;
  return is_recomputed(source, depth);
}

// Excludes values that are live in some iterations only: in the others the op
// might fail.
bool BodyRegion::is_recomputed(const Endpoint& tensor, int depth) {
  constexpr int kDeepest = 8;  // so that a chain is not walked again and again
  const Node& node = *tensor.node;
  if (depth == kDeepest || !is_cheap(node) ||
      !analysis().conditions().includes(given(), analysis().live(tensor)))
    return false;
  if (!is_index(node.output_dtypes()[0]) && node.op() != "Cast") return false;
  return std::ranges::all_of(node.inputs(), [&](const Endpoint& input) {
    return is_at_hand(input, depth + 1);
  });
}

Output BodyRegion::recomputed(const Endpoint& tensor) {
  if (!is_recomputed(tensor, 0)) return {};
  analysis().note(frame(), tensor, Kept::kRecomputed);
  const Node& node = *tensor.node;
  graph::Inputs inputs;
  for (const Endpoint& input : node.inputs()) inputs.add(value(input));
  AttrMap attrs;
  for (const auto& [name, attr] : node.attrs())
    if (!name.starts_with('_')) attrs.emplace(name, attr);
  return scope().op(node.op(), inputs, std::move(attrs));
}

}  // namespace tagflow::autodiff
