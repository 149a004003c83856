#include "graph/function_uses.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "graph/op_registry.h"
#include "graph/program.h"

namespace tagflow::graph {
namespace {

// Further ops are counted, not named.
constexpr size_t kMostOpsNamed = 50;

bool is_known_op(std::string_view op, const FunctionLibrary& library) {
  return OpRegistry::global().find_or_null(op) != nullptr ||
         library.find(op) != nullptr;
}

// The nodes with an op.
struct Uses {
  size_t count = 0;
  std::string first;
};

void count_unknown(const std::vector<NodeDef>& nodes,
                   const FunctionDef* function, const FunctionLibrary& library,
                   std::map<std::string, Uses>& unknown) {
  for (const NodeDef& node : nodes) {
    if (is_known_op(node.op, library)) continue;
    Uses& uses = unknown[node.op];
    if (uses.count++ > 0) continue;
    uses.first = fmt::format("node \"{}\"", node.name);
    if (function != nullptr)
      uses.first += fmt::format(" of function \"{}\"", function->name());
  }
}

std::string describe_unknown(const std::string& op, const Uses& uses) {
  std::string text(OpRegistry::global().find(op).status().message());
  if (text.starts_with(kOpsModule)) text.erase(0, kOpsModule.size());
  return fmt::format(
      "{} ({}{})", text, uses.first,
      uses.count == 1 ? "" : fmt::format(" and {} more", uses.count - 1));
}

// Finds the functions that nodes reach.
class Reach {
 public:
  explicit Reach(const FunctionLibrary& library) : library_(library) {}

  void visit(std::string_view op, const AttrMap& attrs) {
    for (const std::string& name : named_functions(op, attrs, library_))
      reach(name);
  }

  // Sorted by name, including those reached indirectly; the gradients of
  // functions, too, or only those that nodes name.
  std::vector<const FunctionDef*> all(bool with_gradients = false) {
    for (size_t i = 0; i < reached_.size(); ++i) {
      for (const NodeDef& node : reached_[i]->nodes) visit(node.op, node.attrs);
      visit(reached_[i]->name(), reached_[i]->attrs);
      if (with_gradients) reach(library_.gradient_of(reached_[i]->name()));
    }
    std::ranges::sort(reached_, {}, &FunctionDef::name);
    return std::move(reached_);
  }

 private:
  void reach(std::string_view name) {
    const FunctionDef* function = library_.find(name);
    if (function != nullptr && seen_.insert(function).second)
      reached_.push_back(function);
  }

  const FunctionLibrary& library_;
  std::unordered_set<const FunctionDef*> seen_;
  std::vector<const FunctionDef*> reached_;
};

}  // namespace

std::vector<std::string> named_functions(std::string_view op,
                                         const AttrMap& attrs,
                                         const FunctionLibrary& library) {
  std::vector<std::string> names;
  if (OpRegistry::global().find_or_null(op) == nullptr &&
      library.find(op) != nullptr)
    names.emplace_back(op);
  for (const FunctionRef* function : functions_of(attrs))
    names.push_back(function->name);
  return names;
}

std::vector<const FunctionDef*> reached_functions(
    const std::vector<NodeDef>& nodes, const FunctionLibrary& library) {
  Reach reach(library);
  for (const NodeDef& node : nodes) reach.visit(node.op, node.attrs);
  return reach.all();
}

std::vector<const FunctionDef*> reached_functions(
    std::span<Node* const> nodes, const FunctionLibrary& library) {
  Reach reach(library);
  for (const Node* node : nodes) reach.visit(node->op(), node->attrs());
  return reach.all();
}

FunctionLibrary functions_of_kernels(const Program& program,
                                     const FunctionLibrary& library) {
  if (library.empty()) return {};
  Reach reach(library);
  const auto visit = [&](const Graph& graph) {
    for (const Node* node : graph.nodes())
      if (node->op() != "_Call") reach.visit(node->op(), node->attrs());
  };
  visit(program.graph);
  for (const auto& body : program.bodies) visit(body->graph);
  return library.subset(reach.all(/*with_gradients=*/true));
}

Status check_ops(const std::vector<NodeDef>& nodes,
                 const std::vector<const FunctionDef*>& functions,
                 const FunctionLibrary& library) {
  std::map<std::string, Uses> unknown;
  count_unknown(nodes, nullptr, library, unknown);
  for (const FunctionDef* function : functions)
    count_unknown(function->nodes, function, library, unknown);
  if (unknown.empty()) return {};
  std::vector<std::string> texts;
  for (const auto& [op, uses] : unknown) {
    if (texts.size() == kMostOpsNamed) {
      texts.push_back(
          fmt::format("and {} more", unknown.size() - kMostOpsNamed));
      break;
    }
    texts.push_back(describe_unknown(op, uses));
  }
  return error(Code::kUnimplemented, "{}{}", kOpsModule,
               fmt::join(texts, "; "));
}

}  // namespace tagflow::graph
