#include "graph/file/object_graph.h"

#include <algorithm>
#include <map>

#include "graph/fault.h"
#include "graph/function_uses.h"

namespace tagflow::graph {
namespace {

constexpr int kUnknown = -1;

// Escapes a name within a path as TensorFlow does.
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

// The inverse of escaped().
std::string unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '.' && i + 1 < text.size();
    name += is_escape && text[i + 1] == 'S' ? '/' : text[i];
    if (is_escape) ++i;
  }
  return name;
}

// The shortest path from the root to each object, as "layers/0/kernel". Made on
// demand: the paths of all objects could take memory quadratic in the file's
// size.
class Paths {
 public:
  // REQUIRES: the model outlives it.
  explicit Paths(const ObjectGraph& model) : origins_(model.objects.size()) {
    if (origins_.empty()) return;
    std::vector<int> found = {0};
    for (size_t next = 0; next < found.size(); ++next)
      for (const auto& [name, child] :
           model.objects[size_t(found[next])].children) {
        Origin& origin = origins_[size_t(child)];
        if (child == 0 || origin.parent != kUnknown) continue;
        origin = {found[next], &name};
        found.push_back(child);
      }
  }

  // Empty if there is no path. ResourceExhausted if all paths together have too
  // many bytes.
  Result<std::string> path_of(int object) {
    std::vector<std::string_view> names;
    for (const Origin* origin = &origins_[size_t(object)];
         origin->parent != kUnknown;
         origin = &origins_[size_t(origin->parent)]) {
      // Escapes at most double the size.
      const size_t bytes = 2 * origin->name->size() + 1;
      if (bytes > left_)
        return error(Code::kResourceExhausted,
                     "[objects] the paths of the variables have more than {} "
                     "bytes",
                     kMaxBytes);
      left_ -= bytes;
      names.push_back(*origin->name);
    }
    std::string path;
    for (size_t i = names.size(); i-- > 0;) {
      if (!path.empty()) path += '/';
      path += escaped(names[i]);
    }
    return path;
  }

 private:
  struct Origin {
    int parent = kUnknown;
    const std::string* name = nullptr;  // in the parent
  };
  // Far more than real programs need.
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  std::vector<Origin> origins_;
  size_t left_ = kMaxBytes;
};

// The node that makes the handle, behind Identities.
const Node* maker_of(Endpoint input) {
  while (input.node != nullptr && input.node->op() == "Identity" &&
         !input.node->inputs().empty())
    input = input.node->inputs()[0];
  return input.node;
}

// For functions of conditionals and loops, all inputs are arguments.
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
        paths_(model) {}

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
          "[objects] input {} of \"{}\" must be variable {:?}, but it is {}",
          input, call.name(), name,
          node == nullptr ? std::string("missing")
                          : fmt::format("{} \"{}\"", node->op(), node->name()));
    const int other = same_[size_t(object)];
    const std::string key =
        other == kUnknown ? "" : checkpoint_.objects[size_t(other)].key;
    const auto it = variables_.find(node->id());
    if (it == variables_.end()) {
      TAGFLOW_ASSIGN(std::string path, paths_.path_of(object));
      variables_.emplace(
          node->id(), SavedVariable{node, object, std::move(path), name, key});
      return {};
    }
    if (it->second.key == key) return {};
    return invalid_argument(
        "[objects] variable \"{}\" would have the values of both {:?} and {:?}",
        node->name(), it->second.key, key);
  }

  const ObjectGraph& model_;
  const ObjectGraph& checkpoint_;
  const std::vector<int> same_;
  Paths paths_;
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
  std::map<std::pair<int, std::string_view>, int> others;
  for (size_t i = 0; i < checkpoint.objects.size(); ++i)
    for (const auto& [name, child] : checkpoint.objects[i].children)
      others.emplace(std::pair(int(i), std::string_view(name)), child);
  std::vector<int> found = {0};
  same[0] = 0;
  for (size_t next = 0; next < found.size(); ++next) {
    const auto number = size_t(found[next]);
    for (const auto& [name, child] : model.objects[number].children) {
      const auto it = others.find({same[number], name});
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
