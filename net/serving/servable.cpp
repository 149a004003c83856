#include "net/serving/servable.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "graph/analysis/prune.h"
#include "graph/fault.h"
#include "graph/function_uses.h"
#include "graph/op_registry.h"

namespace tagflow::net::serving {
namespace {

template <class Value>
std::string names_in(const std::map<std::string, Value>& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

// The tensor as the graph knows it, and what the file says beside that.
Result<TensorSpec> spec_of(const graph::Graph& graph,
                           const graph::Signature& signature,
                           const std::string& tensor) {
  TAGFLOW_ASSIGN(const graph::Endpoint found, graph.endpoint(tensor));
  TensorSpec spec;
  spec.tensor = tensor;
  spec.dtype = remove_ref(found.node->output_dtypes()[size_t(found.port)]);
  spec.has_default = found.node->op() != "Placeholder";
  spec.shape = found.node->output_shape(found.port);
  const auto said = signature.infos.find(tensor);
  if (said != signature.infos.end())
    if (auto merged = spec.shape.merge(said->second.shape); merged.ok())
      spec.shape = *std::move(merged);
  return spec;
}

// Whether the first dimension may be any number of rows.
bool has_free_rows(const TensorSpec& spec) {
  return spec.shape.has_rank() && spec.shape.rank() > 0 &&
         !spec.shape.dim_known(0);
}

// PermissionDenied if a run of the signature may use files.
Status check_files(const graph::Graph& graph, const ServedSignature& signature,
                   const std::vector<graph::Endpoint>& feeds,
                   const std::vector<graph::Endpoint>& fetches) {
  const graph::OpRegistry& registry = graph::OpRegistry::global();
  const auto refuse = [&](const std::string& node, const std::string& op) {
    return error(Code::kPermissionDenied,
                 "[serving] signature \"{}\" uses files: node \"{}\" has the "
                 "op {}; --allow-file-ops would allow it",
                 signature.name, node, op);
  };
  const std::vector<graph::Node*> nodes =
      graph::needed_nodes(graph, fetches, {}, feeds);
  for (const graph::Node* node : nodes)
    if (registry.uses_files(node->op(), node->attrs()))
      return refuse(node->name(), node->op());
  for (const graph::FunctionDef* function :
       graph::reached_functions(nodes, graph.library()))
    for (const graph::NodeDef& node : function->nodes)
      if (registry.uses_files(node.op, node.attrs))
        return refuse(fmt::format("{}/{}", function->name(), node.name),
                      node.op);
  return {};
}

}  // namespace

std::string TensorSpec::describe() const {
  return dtype_name(dtype) + shape.to_string();
}

Result<std::shared_ptr<const Servable>> Servable::load(
    const std::string& model, int64_t version,
    const std::filesystem::path& folder, const ServableOptions& options,
    const actors::CancelToken& stop) try {
  actors::SessionOptions session = options.session;
  if (!options.allows_file_ops) {
    const auto policy = graph::OpPolicy::stranger(folder.string());
    session.policy.reads = policy.reads;
    session.policy.writes = policy.writes;
  }
  const std::shared_ptr<Servable> servable(new Servable());
  servable->model_ = model;
  servable->version_ = version;
  TAGFLOW_ASSIGN(
      servable->saved_,
      actors::SavedModel::load(folder, std::move(session), {.cancel = stop}));
  for (const auto& [name, signature] : servable->saved_->signatures()) {
    if (stop.cancelled())
      return error(Code::kCancelled, "[serving] the load was cancelled");
    if (!name.starts_with("__"))
      TAGFLOW_RETURN_IF_ERROR(
          servable->add_signature(name, signature, options.allows_file_ops));
  }
  if (servable->signatures_.empty())
    return error(Code::kFailedPrecondition,
                 "[serving] the model in \"{}\" has no signature",
                 folder.string());
  return std::shared_ptr<const Servable>(servable);
} catch (...) {
  return current_fault("serving");
}

Status Servable::add_signature(const std::string& name,
                               const graph::Signature& signature,
                               bool allows_file_ops) {
  actors::Session& session = saved_->session();
  const graph::Graph& graph = session.graph();
  ServedSignature& served = signatures_[name];
  served.name = name;
  served.method = signature.method;
  std::vector<std::string> feeds, fetches;
  std::vector<graph::Endpoint> fed, fetched;
  const auto add = [&](const auto& names, auto& specs, auto& tensors,
                       auto& endpoints) -> Status {
    for (const auto& [argument, tensor] : names) {
      auto spec = spec_of(graph, signature, tensor);
      if (!spec.ok())
        return std::move(spec).status().with_prefix(fmt::format(
            "[serving] \"{}\" of signature \"{}\": ", argument, name));
      specs[argument] = *std::move(spec);
      tensors.push_back(tensor);
      endpoints.push_back(graph.endpoint(tensor).value());
    }
    return {};
  };
  served.broken = add(signature.inputs, served.inputs, feeds, fed);
  if (served.broken.ok())
    served.broken = add(signature.outputs, served.outputs, fetches, fetched);
  if (!served.broken.ok()) return {};
  if (!allows_file_ops)
    TAGFLOW_RETURN_IF_ERROR(check_files(graph, served, fed, fetched));
  const auto is_row = [](const auto& named) {
    return has_free_rows(named.second);
  };
  served.has_rows =
      !served.inputs.empty() && std::ranges::all_of(served.inputs, is_row) &&
      std::ranges::all_of(served.outputs, [](const auto& named) {
        return !named.second.shape.has_rank() || has_free_rows(named.second);
      });
  auto call = session.make_callable(feeds, fetches);
  if (call.ok()) {
    calls_.emplace(name, *std::move(call));
  } else {
    served.broken = std::move(call).status();
  }
  return {};
}

Result<const ServedSignature*> Servable::signature(
    const std::string& name) const {
  const auto found = signatures_.find(name.empty() ? kDefaultSignature : name);
  if (found != signatures_.end()) return &found->second;
  return error(Code::kFailedPrecondition,
               "[serving] model \"{}\" has no signature \"{}\"; it has {}",
               model_, name.empty() ? kDefaultSignature : name,
               names_in(signatures_));
}

Status Servable::check(const ServedSignature& signature, const Tensors& inputs,
                       const std::vector<std::string>& output_filter) const {
  TAGFLOW_RETURN_IF_ERROR(signature.broken);
  for (const auto& [name, value] : inputs) {
    const auto found = signature.inputs.find(name);
    if (found == signature.inputs.end())
      return invalid_argument(
          "[serving] signature \"{}\" has no input \"{}\"; it has {}",
          signature.name, name, names_in(signature.inputs));
    const TensorSpec& spec = found->second;
    if (value.dtype() != spec.dtype || !spec.shape.accepts(value.shape()))
      return invalid_argument(
          "[serving] input \"{}\" of signature \"{}\" is {}, but must be {}",
          name, signature.name, value.describe(), spec.describe());
  }
  for (const auto& [name, spec] : signature.inputs)
    if (!spec.has_default && !inputs.contains(name))
      return invalid_argument(
          "[serving] input \"{}\" of signature \"{}\", a {}, has no value",
          name, signature.name, spec.describe());
  std::set<std::string> names;
  for (const std::string& name : output_filter) {
    if (!signature.outputs.contains(name))
      return invalid_argument(
          "[serving] signature \"{}\" has no output \"{}\"; it has {}",
          signature.name, name, names_in(signature.outputs));
    if (!names.insert(name).second)
      return invalid_argument(
          "[serving] the output filter has \"{}\" more than once", name);
  }
  return {};
}

void Servable::run(const ServedSignature& signature, const Tensors& inputs,
                   const std::vector<std::string>& output_filter,
                   const actors::RunOptions& options, Done done) const {
  std::vector<std::string> names = output_filter;
  if (names.empty())
    for (const auto& [name, spec] : signature.outputs) names.push_back(name);
  const bool is_whole =
      output_filter.empty() && inputs.size() == signature.inputs.size();
  std::vector<std::string> fetches;
  if (!is_whole)
    for (const std::string& name : names)
      fetches.push_back(signature.outputs.at(name).tensor);
  const actors::Done answer =
      [names = std::move(names), done = std::move(done)](
          Result<std::vector<Tensor>> values, const actors::RunStats&) {
        if (!values.ok()) return done(std::move(values).status());
        Tensors outputs;
        for (size_t i = 0; i < names.size(); ++i)
          outputs.emplace(names[i], std::move((*values)[i]));
        done(std::move(outputs));
      };
  if (is_whole) {
    std::vector<Tensor> feeds;
    for (const auto& [name, value] : inputs) feeds.push_back(value);
    return calls_.at(signature.name).run_async(feeds, options, answer);
  }
  std::vector<actors::Feed> feeds;
  for (const auto& [name, value] : inputs)
    feeds.emplace_back(signature.inputs.at(name).tensor, value);
  saved_->session().run_async(feeds, fetches, {}, options, answer);
}

}  // namespace tagflow::net::serving
