#include "tests/reference/static_frames.h"

namespace tagflow::reference {

using graph::Node;

bool is_loop_constant(const Node& node) {
  const Result<bool> constant = node.attr<bool>("is_constant");
  return constant.ok() && *constant;
}

Status StaticFrames::place(const std::vector<const Node*>& needed) {
  for (const Node* node : needed) {
    TAGFLOW_ASSIGN(StaticFrame * where, frame(*node));
    index_[node] = where->nodes.size();
    where->nodes.push_back(node);
    TAGFLOW_ASSIGN(StaticFrame * out, output_frame(*node));
    if (node->is_enter()) out->enters.push_back(node);
  }
  return {};
}

Result<StaticFrame*> StaticFrames::output_frame(const Node& node) {
  TAGFLOW_ASSIGN(StaticFrame * where, frame(node));
  if (node.is_enter()) {
    TAGFLOW_ASSIGN(const std::string name,
                   node.attr<std::string>("frame_name"));
    std::unique_ptr<StaticFrame>& child = where->children[name];
    if (child == nullptr) {
      child = std::make_unique<StaticFrame>();
      child->name = name;
      child->parent = where;
    }
    return child.get();
  }
  if (!node.is_exit() && !node.is_next_iteration()) return where;
  if (where->parent == nullptr)
    return invalid_argument("[reference] \"{}\" ({}) is in no loop",
                            node.name(), node.op());
  return node.is_exit() ? where->parent : where;
}

// That of all inputs. A back edge says nothing: the NextIteration has its
// frame from the Merge.
Result<StaticFrame*> StaticFrames::frame(const Node& node) {
  const auto [it, is_new] = frame_.emplace(&node, nullptr);
  if (!is_new) {
    if (it->second != nullptr) return it->second;
    return invalid_argument("[reference] an illegal cycle through \"{}\"",
                            node.name());
  }
  constexpr int kMaxDepth = 4000;
  if (++depth_ > kMaxDepth)
    return error(Code::kResourceExhausted,
                 "[reference] a chain of more than {} ops", kMaxDepth);
  StaticFrame* result = nullptr;
  const auto join = [&](const Node& source) -> Status {
    TAGFLOW_ASSIGN(StaticFrame * from, output_frame(source));
    if (result != nullptr && result != from)
      return invalid_argument(
          "[reference] the inputs of \"{}\" are of frames \"{}\" and \"{}\"",
          node.name(), result->name, from->name);
    result = from;
    return {};
  };
  for (const graph::Endpoint& input : node.inputs()) {
    if (input.node == nullptr)
      return invalid_argument("[reference] \"{}\" has an open input",
                              node.name());
    const bool back = node.is_merge() && input.node->is_next_iteration();
    if (!back) TAGFLOW_RETURN_IF_ERROR(join(*input.node));
  }
  for (const Node* control : node.control_inputs())
    TAGFLOW_RETURN_IF_ERROR(join(*control));
  --depth_;
  if (result == nullptr) result = &root_;
  frame_[&node] = result;
  return result;
}

}  // namespace tagflow::reference
