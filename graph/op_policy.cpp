#include "graph/op_policy.h"

#include <filesystem>
#include <system_error>

#include "graph/beneath.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

namespace fs = std::filesystem;

// Checks nodes, one after another, of a graph or a function.
class NodeCheck {
 public:
  NodeCheck(const OpPolicy& policy, const FunctionLibrary& library)
      : policy_(policy),
        library_(library),
        has_files_(!policy.reads.is_nowhere() || !policy.writes.is_nowhere()) {}

  // Whether there is anything to check.
  bool is_needed() const {
    return policy_.allowed || !policy_.denied.empty() || !has_files_;
  }

  Status check(const std::string& name, const std::string& op,
               const AttrMap& attrs, const FunctionDef* function) const {
    const OpRegistry& registry = OpRegistry::global();
    // A call: the body of the function is checked.
    if (registry.find_or_null(op) == nullptr && library_.find(op) != nullptr)
      return {};
    const auto refuse = [&](std::string_view why) {
      return error(Code::kPermissionDenied,
                   "[policy] node \"{}\"{} has the op {}, {}", name,
                   function == nullptr
                       ? ""
                       : fmt::format(" of function \"{}\"", function->name()),
                   op, why);
    };
    if (policy_.denied.contains(op))
      return refuse("which the list of denied ops of this session has");
    if (policy_.allowed && !policy_.allowed->contains(op))
      return refuse("which the list of allowed ops of this session lacks");
    if (!has_files_ && registry.uses_files(op, attrs))
      return refuse(
          "which uses files, and this session has none: a root folder for "
          "files would allow it");
    return {};
  }

  Status check_functions() const {
    for (const FunctionDef* function : library_.in_order_added())
      for (const NodeDef& node : function->nodes)
        TAGFLOW_RETURN_IF_ERROR(
            check(node.name, node.op, node.attrs, function));
    return {};
  }

 private:
  const OpPolicy& policy_;
  const FunctionLibrary& library_;
  const bool has_files_;
};

}  // namespace

FileScope FileScope::nowhere() {
  FileScope scope;
  scope.kind_ = Kind::kNowhere;
  return scope;
}

FileScope FileScope::beneath(const std::string& root) {
  FileScope scope;
  scope.kind_ = Kind::kBeneath;
  // The working directory may change later.
  std::error_code code;
  const fs::path whole = fs::absolute(root, code);
  scope.root_ = code ? root : whole.string();
  return scope;
}

Result<std::string> FileScope::resolve(const std::string& path) const {
  return resolve_part(path, path);
}

Result<std::string> FileScope::resolve_name(const std::string& path) const {
  if (kind_ != Kind::kBeneath) return resolve(path);
  const fs::path name = fs::path(path).filename();
  if (name.empty() || name == "." || name == "..")
    return invalid_argument("[policy] {:?} is not the name of a file", path);
  TAGFLOW_ASSIGN(
      const std::string folder,
      resolve_part(path, path.substr(0, path.size() - name.native().size())));
  return (fs::path(folder) / name).string();
}

Result<std::string> FileScope::resolve_part(const std::string& path,
                                            const std::string& part) const {
  if (path.find('\0') != path.npos)
    return invalid_argument("[policy] {:?}: a filename contains a zero byte",
                            path);
  if (kind_ == Kind::kEverywhere) return part;
  if (kind_ == Kind::kNowhere)
    return error(Code::kPermissionDenied,
                 "[policy] {:?} is refused: this session must not use files in "
                 "this way; a root folder for them would allow it",
                 path);
  Result<fs::path> found = resolve_beneath(root_, part);
  if (found.ok()) return found->string();
  Status why = std::move(found).status();
  if (why.code() != Code::kPermissionDenied) return why;
  return std::move(why).with_prefix(fmt::format(
      "[policy] {:?} is not beneath \"{}\", the folder for files of this "
      "session: ",
      path, root_));
}

OpPolicy OpPolicy::stranger(const std::string& model_folder) {
  OpPolicy policy;
  policy.reads = FileScope::beneath(model_folder);
  policy.writes = FileScope::nowhere();
  return policy;
}

Status OpPolicy::validate() const {
  const auto check_names = [](const Names& names) -> Status {
    for (const std::string& name : names) {
      const Status found = OpRegistry::global().find(name).status();
      if (!found.ok()) return invalid_argument("[policy] {}", found.message());
    }
    return {};
  };
  TAGFLOW_RETURN_IF_ERROR(check_names(denied));
  if (allowed) TAGFLOW_RETURN_IF_ERROR(check_names(*allowed));
  for (const FileScope* scope : {&reads, &writes}) {
    std::error_code code;
    if (scope->is_everywhere() || scope->is_nowhere() ||
        fs::is_directory(scope->root(), code))
      continue;
    return invalid_argument(
        "[policy] \"{}\", the root of files, is not a folder", scope->root());
  }
  return {};
}

Status OpPolicy::check(const Graph& graph) const {
  const NodeCheck check(*this, graph.library());
  if (!check.is_needed()) return {};
  for (const Node* node : graph.nodes())
    TAGFLOW_RETURN_IF_ERROR(
        check.check(node->name(), node->op(), node->attrs(), nullptr));
  return check.check_functions();
}

Status OpPolicy::check(std::span<const NodeDef> nodes,
                       const FunctionLibrary& library) const {
  const NodeCheck check(*this, library);
  if (!check.is_needed()) return {};
  for (const NodeDef& node : nodes)
    TAGFLOW_RETURN_IF_ERROR(
        check.check(node.name, node.op, node.attrs, nullptr));
  return {};
}

}  // namespace tagflow::graph
