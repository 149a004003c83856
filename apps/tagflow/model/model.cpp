#include "apps/tagflow/model/model.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "apps/shared/io/file.h"
#include "graph/file/foreign_file.h"
#include "graph/function.h"
#include "graph/function_uses.h"
#include "graph/functions/check.h"
#include "graph/status_text.h"

namespace tagflow::apps {
namespace {

constexpr std::string_view kStdin = "-";
constexpr const char* kDefaultSignature = "serving_default";

std::vector<std::string> keys_of(
    const std::map<std::string, std::string>& names) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : names) keys.push_back(key);
  return keys;
}

// Text has no such bytes, and a binary GraphDef begins with one.
bool is_text(std::string_view bytes) {
  constexpr size_t kLooks = 4096;
  return std::ranges::none_of(bytes.substr(0, kLooks), [](unsigned char c) {
    return c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

// A GraphDef that another program writes to us.
Result<graph::GraphFile> read_stdin(const graph::Limits& limits) {
  TAGFLOW_ASSIGN(
      const std::string bytes,
      io::read_file("/dev/stdin", limits.max_bytes, io::Pipes::kRead));
  if (bytes.empty())
    return error(Code::kDataLoss, "[graphdef] there is nothing on stdin");
  const std::string what = graph::describe_foreign_file("", bytes);
  if (!what.empty())
    return invalid_argument("[graphdef] not a graph, but {}", what);
  return is_text(bytes) ? graph::parse_graphdef_text(bytes, limits)
                        : graph::parse_graphdef(bytes, limits);
}

}  // namespace

std::vector<std::string> names_of_signatures(const Model& model) {
  std::vector<std::string> names;
  for (const NamedSignature& signature : model.signatures) {
    if (!signature.first.starts_with("__")) names.push_back(signature.first);
  }
  return names;
}

Result<Model> load_model(const std::string& path, const graph::Limits& limits) {
  Result<graph::GraphFile> loaded =
      path == kStdin ? read_stdin(limits) : graph::load_file(path, limits);
  if (!loaded.ok()) return name_file(std::move(loaded).status(), path);
  graph::GraphFile file = *std::move(loaded);
  Status status = graph::check_ops(file.nodes, {}, file.library);
  // If the file is rejected, names all unknown ops, including those in
  // functions.
  if (!status.ok())
    status =
        graph::check_ops(file.nodes, file.library.functions(), file.library);
  Model model;
  if (status.ok()) {
    model.signatures = std::move(file.signatures);
    model.state = std::move(file.state);
    model.queue_runners = std::move(file.queue_runners);
    Result<graph::Graph> built =
        graph::build_graph(std::move(file), limits.budget);
    status = built.status();
    if (built.ok()) model.graph = std::move(built).value();
  }
  if (!status.ok()) return std::move(status).with_prefix(path + ": ");
  return model;
}

Result<const NamedSignature*> choose_signature(const Model& model,
                                               const std::string& wanted) {
  const auto& all = model.signatures;
  const auto it = all.find(wanted.empty() ? kDefaultSignature : wanted);
  if (it != all.end()) return &*it;
  const std::vector<std::string> names = names_of_signatures(model);
  if (wanted.empty()) {
    return names.size() == 1 ? &*all.find(names[0]) : nullptr;
  }
  if (names.empty()) {
    return error(Code::kNotFound,
                 "[--signature] the file has no signatures; SavedModels and "
                 "MetaGraphs have some");
  }
  return error(Code::kNotFound,
               "[--signature] the file has no signature \"{}\"; it has \"{}\"",
               wanted, fmt::join(names, "\", \""));
}

Result<TensorName> find_tensor(
    const Model& model, const NamedSignature* signature,
    std::map<std::string, std::string> graph::Signature::*names,
    const std::string& text) {
  const bool is_input = names == &graph::Signature::inputs;
  if (signature != nullptr) {
    const auto& known = signature->second.*names;
    if (const auto it = known.find(text); it != known.end()) {
      const Result<graph::Endpoint> found = model.graph.endpoint(it->second);
      if (found.ok())
        return TensorName{{text, file_stem(text)}, found->to_string()};
      return found.status().with_prefix(fmt::format(
          "{} \"{}\" of signature \"{}\": ", is_input ? "input" : "output",
          text, signature->first));
    }
  }
  const Result<graph::Endpoint> found = model.graph.endpoint(text);
  if (found.ok()) return TensorName{fetch_of_port(text), found->to_string()};
  const Status& status = found.status();
  const std::string name =
      text.substr(0, std::min(text.rfind(':'), text.size()));
  const std::string why = explain_inner_name(model.graph, name);
  if (!why.empty()) {
    return error(status.code(), "[graph] no node \"{}\"{}", name, why);
  }
  if (signature == nullptr) {
    const std::vector<std::string> others = names_of_signatures(model);
    if (others.empty()) return status;
    return error(status.code(),
                 "{}; signatures define further names: select a signature with "
                 "--signature, one of \"{}\"",
                 status.message(), fmt::join(others, "\", \""));
  }
  return error(status.code(), "{}; the {} of signature \"{}\" are {}",
               status.message(), is_input ? "inputs" : "outputs",
               signature->first,
               fmt::join(keys_of(signature->second.*names), ", "));
}

Result<std::vector<TensorName>> outputs_of(const Model& model,
                                           const NamedSignature& signature) {
  std::vector<TensorName> outputs;
  for (const auto& [name, tensor] : signature.second.outputs) {
    TAGFLOW_ASSIGN(
        TensorName output,
        find_tensor(model, &signature, &graph::Signature::outputs, name));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

std::string explain_inner_name(const graph::Graph& graph,
                               const std::string& name) {
  for (size_t end = name.rfind('/'); end != name.npos && end > 0;
       end = name.rfind('/', end - 1)) {
    const graph::Node* node = graph.find(name.substr(0, end));
    if (node == nullptr) continue;
    const auto functions =
        graph::named_functions(node->op(), node->attrs(), graph.library());
    if (functions.empty()) return "";
    return fmt::format(
        "; {} \"{}\" calls {}, and nodes inside a function can be neither fed "
        "nor fetched: use the inputs and outputs of \"{}\", such as \"{}:0\"",
        node->op(), node->name(), fmt::join(functions, " and "), node->name(),
        node->name());
  }
  return "";
}

}  // namespace tagflow::apps
