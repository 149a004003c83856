#include "graph/object_graph.h"

#include <algorithm>
#include <map>

#include "graph/fault.h"
#include "graph/functions/check.h"

namespace tagflow::graph {
namespace {

constexpr int kUnknown = -1;

// As TensorFlow writes a name within a path.
std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c == '.') {
      text += "..";
    } else if (c == '/') {
      text += ".S";
    } else {
      text += c;
    }
  return text;
}

// What escaped() made of it.
std::string unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '.' && i + 1 < text.size();
    name += is_escape && text[i + 1] == 'S' ? '/' : text[i];
    if (is_escape) ++i;
  }
  return name;
}

// The shortest path from the root to each object, as "layers/0/kernel"; empty
// where there is none.
std::vector<std::string> paths_of(const ObjectGraph& model) {
  std::vector<std::string> paths(model.objects.size());
  std::vector<bool> is_found(model.objects.size());
  if (paths.empty()) return paths;
  std::vector<size_t> found = {0};
  is_found[0] = true;
  for (size_t next = 0; next < found.size(); ++next)
    for (const auto& [name, child] : model.objects[found[next]].children) {
      if (is_found[size_t(child)]) continue;
      is_found[size_t(child)] = true;
      const std::string& before = paths[found[next]];
      paths[size_t(child)] =
          before.empty() ? escaped(name) : before + "/" + escaped(name);
      found.push_back(size_t(child));
    }
  return paths;
}

// The node that makes the handle, through Identities.
const Node* maker_of(Endpoint input) {
  while (input.node != nullptr && input.node->op() == "Identity" &&
         !input.node->inputs().empty())
    input = input.node->inputs()[0];
  return input.node;
}

// Of a conditional's or a loop's functions, all inputs are arguments.
bool is_call(const Node& node) {
  return node.op() == "StatefulPartitionedCall" ||
         node.op() == "PartitionedCall";
}

// REQUIRES: there are objects.
int child_at(const ObjectGraph& model, std::string_view path) {
  int object = 0;
  while (true) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string name = unescaped(path.substr(0, end));
    const auto& children = model.objects[size_t(object)].children;
    const auto it =
        std::ranges::find(children, name, &std::pair<std::string, int>::first);
    if (it == children.end()) return kUnknown;
    object = it->second;
    if (end == path.size()) return object;
    path.remove_prefix(end + 1);
  }
}

class Captures {
 public:
  Captures(const ObjectGraph& model, const ObjectGraph& checkpoint)
      : model_(model),
        checkpoint_(checkpoint),
        same_(same_objects(model, checkpoint)),
        paths_(paths_of(model)) {}

  Status add_call(const Node& call, const std::string& function,
                  const std::vector<int>& captured) {
    const auto inputs = call.inputs();
    if (captured.size() > inputs.size())
      return invalid_argument(
          "[objects] function {:?} captures {} objects, but its call \"{}\" "
          "has {} inputs",
          function, captured.size(), call.name(), inputs.size());
    const size_t first = inputs.size() - captured.size();
    for (size_t i = 0; i < captured.size(); ++i) {
      const int object = captured[i];
      if (object < 0 || size_t(object) >= model_.objects.size())
        return invalid_argument(
            "[objects] function {:?} captures object {}, of {} objects",
            function, object, model_.objects.size());
      if (!model_.objects[size_t(object)].is_variable) continue;
      const Node* node = maker_of(inputs[first + i]);
      TAGFLOW_RETURN_IF_ERROR(add(object, node, call, first + i));
    }
    return {};
  }

  std::vector<SavedVariable> take() {
    std::vector<SavedVariable> variables;
    for (auto& [id, variable] : variables_)
      variables.push_back(std::move(variable));
    return variables;
  }

 private:
  Status add(int object, const Node* node, const Node& call, size_t input) {
    const std::string& name = model_.objects[size_t(object)].name;
    if (node == nullptr || node->op() != "VarHandleOp")
      return invalid_argument(
          "[objects] input {} of \"{}\" is to be variable {:?}, but it is {}",
          input, call.name(), name,
          node == nullptr ? std::string("missing")
                          : fmt::format("{} \"{}\"", node->op(), node->name()));
    const int other = same_[size_t(object)];
    const std::string key =
        other == kUnknown ? "" : checkpoint_.objects[size_t(other)].key;
    const auto [it, is_new] = variables_.try_emplace(
        node->id(),
        SavedVariable{node, object, paths_[size_t(object)], name, key});
    if (is_new || it->second.key == key) return {};
    return invalid_argument(
        "[objects] variable \"{}\" is to have the values of both {:?} and {:?}",
        node->name(), it->second.key, key);
  }

  const ObjectGraph& model_;
  const ObjectGraph& checkpoint_;
  const std::vector<int> same_;
  const std::vector<std::string> paths_;
  std::map<NodeId, SavedVariable> variables_;  // by their nodes
};

}  // namespace

int find_object(const ObjectGraph& model, std::string_view path) {
  if (model.objects.empty()) return kUnknown;
  constexpr std::string_view kSlot = "/.OPTIMIZER_SLOT/";
  const size_t slot = path.find(kSlot);
  if (slot == path.npos) return child_at(model, path);
  const std::string_view rest = path.substr(slot + kSlot.size());
  const size_t slash = std::min(rest.rfind('/'), rest.size());
  const int variable = child_at(model, path.substr(0, slot));
  const int optimizer = child_at(model, rest.substr(0, slash));
  if (variable < 0 || optimizer < 0 || slash == rest.size()) return kUnknown;
  const std::string name = unescaped(rest.substr(slash + 1));
  for (const SavedObject::Slot& one : model.objects[size_t(optimizer)].slots)
    if (one.name == name && one.variable == variable) return one.slot;
  return kUnknown;
}

std::vector<int> same_objects(const ObjectGraph& model,
                              const ObjectGraph& checkpoint) {
  std::vector<int> same(model.objects.size(), kUnknown);
  if (same.empty() || checkpoint.objects.empty()) return same;
  std::vector<int> found = {0};
  same[0] = 0;
  for (size_t next = 0; next < found.size(); ++next) {
    const auto number = size_t(found[next]);
    std::map<std::string_view, int> others;
    for (const auto& [name, child] :
         checkpoint.objects[size_t(same[number])].children)
      others.emplace(name, child);
    for (const auto& [name, child] : model.objects[number].children) {
      const auto it = others.find(name);
      if (it == others.end() || same[size_t(child)] != kUnknown) continue;
      same[size_t(child)] = it->second;
      found.push_back(child);
    }
  }
  std::map<std::pair<std::string_view, int>, int> slots;
  for (const SavedObject& object : checkpoint.objects)
    for (const SavedObject::Slot& slot : object.slots)
      slots.emplace(std::pair(std::string_view(slot.name), slot.variable),
                    slot.slot);
  for (const SavedObject& object : model.objects)
    for (const SavedObject::Slot& slot : object.slots) {
      const auto it = slots.find({slot.name, same[size_t(slot.variable)]});
      if (it != slots.end() && same[size_t(slot.slot)] == kUnknown)
        same[size_t(slot.slot)] = it->second;
    }
  return same;
}

Result<std::vector<SavedVariable>> captured_variables(
    const Graph& graph, const ObjectGraph& model,
    const ObjectGraph& checkpoint) try {
  Captures captures(model, checkpoint);
  for (const Node* node : graph.nodes()) {
    if (!is_call(*node)) continue;
    for (const std::string& function :
         named_functions(node->op(), node->attrs(), graph.library())) {
      const auto it = model.captures.find(function);
      if (it == model.captures.end()) continue;
      TAGFLOW_RETURN_IF_ERROR(captures.add_call(*node, function, it->second));
    }
  }
  return captures.take();
} catch (...) {
  return current_fault("objects");
}

}  // namespace tagflow::graph
