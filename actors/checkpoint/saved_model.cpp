#include "actors/checkpoint/saved_model.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/fault.h"
#include "graph/file/model_scope.h"

namespace tagflow::actors {
namespace {

bool is_of_tensorflow(const std::string& signature) {
  return signature.starts_with("__");
}

// Whether the signature requires the feed.
bool needs_feed(const graph::Graph& graph, const std::string& tensor) {
  const Result<graph::Endpoint> found = graph.endpoint(tensor);
  return found.ok() && found->node->op() == "Placeholder";
}

template <class Value>
std::vector<std::string> keys_of(const std::map<std::string, Value>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, unused] : map) keys.push_back(key);
  return keys;
}

}  // namespace

Result<std::unique_ptr<SavedModel>> SavedModel::load(
    const std::filesystem::path& path, SessionOptions options,
    const RunOptions& restoring) try {
  const auto go_on = [&] {
    return restoring.cancel && restoring.cancel->cancelled()
               ? error(Code::kCancelled, "[saved_model] \"{}\" is not loaded",
                       path.string())
               : Status();
  };
  TAGFLOW_RETURN_IF_ERROR(graph::check_model_file(path, options.policy.reads));
  TAGFLOW_ASSIGN(graph::GraphFile file, graph::load_file(path));
  TAGFLOW_RETURN_IF_ERROR(go_on());
  std::unique_ptr<SavedModel> model(new SavedModel);
  model->signatures_ = std::move(file.signatures);
  model->state_ = std::move(file.state);
  model->queue_runners_ = std::move(file.queue_runners);
  Result<graph::Graph> graph = graph::build_graph(std::move(file));
  if (!graph.ok())
    return std::move(graph).status().with_prefix(path.string() + ": ");
  TAGFLOW_RETURN_IF_ERROR(go_on());
  TAGFLOW_ASSIGN(model->session_, Session::create(std::move(options)));
  TAGFLOW_RETURN_IF_ERROR(model->session_->extend(*graph));
  TAGFLOW_RETURN_IF_ERROR(go_on());
  if (model->session_->devices().size() > 1) {
    for (const auto& [name, signature] : model->signatures_) {
      if (is_of_tensorflow(name)) continue;
      // An error of a signature is reported by the calls of that signature.
      (void)model->make_call(name, keys_of(signature.inputs));
    }
  }
  TAGFLOW_RETURN_IF_ERROR(
      load_saved_state(*model->session_, model->state_, path, restoring));
  return model;
} catch (...) {
  return current_fault("saved_model");
}

Result<SavedModel::Tensors> SavedModel::run(const std::string& signature,
                                            const Tensors& inputs,
                                            const RunOptions& options,
                                            RunStats* stats) try {
  TAGFLOW_ASSIGN(const auto call, call_of(signature, inputs));
  std::vector<Tensor> values;
  for (const auto& [name, value] : inputs) values.push_back(value);
  TAGFLOW_ASSIGN(std::vector<Tensor> results,
                 call->callable(values, options, stats));
  Tensors outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.emplace(call->outputs[i], std::move(results[i]));
  return outputs;
} catch (...) {
  return current_fault("saved_model");
}

Result<std::shared_ptr<const SavedModel::Call>> SavedModel::call_of(
    const std::string& signature, const Tensors& inputs) {
  const std::pair key(signature, keys_of(inputs));
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = calls_.find(key); it != calls_.end()) return it->second;
  }
  TAGFLOW_ASSIGN(auto call, make_call(signature, key.second));
  const std::lock_guard lock(mutex_);
  return calls_.try_emplace(key, std::move(call)).first->second;
}

Result<std::shared_ptr<const SavedModel::Call>> SavedModel::make_call(
    const std::string& signature, const std::vector<std::string>& names) {
  const auto it = signatures_.find(signature);
  if (it == signatures_.end()) {
    std::vector<std::string> others;
    for (const auto& [name, other] : signatures_)
      if (!is_of_tensorflow(name)) others.push_back(name);
    return error(Code::kNotFound,
                 "[saved_model] there is no signature \"{}\"; there are \"{}\"",
                 signature, fmt::join(others, "\", \""));
  }
  const auto& inputs = it->second.inputs;
  const auto& outputs = it->second.outputs;
  std::vector<std::string> feeds, fetches, missing;
  for (const std::string& name : names) {
    const auto input = inputs.find(name);
    if (input == inputs.end())
      return invalid_argument(
          "[saved_model] signature \"{}\" has no input \"{}\"; its inputs are "
          "\"{}\"",
          signature, name, fmt::join(keys_of(inputs), "\", \""));
    feeds.push_back(input->second);
  }
  for (const auto& [name, tensor] : inputs)
    if (!std::ranges::binary_search(names, name) &&
        needs_feed(session_->graph(), tensor))
      missing.push_back(name);
  if (!missing.empty())
    return invalid_argument(
        "[saved_model] signature \"{}\" needs values for its inputs \"{}\"",
        signature, fmt::join(missing, "\", \""));
  auto call = std::make_shared<Call>();
  for (const auto& [name, tensor] : outputs) {
    call->outputs.push_back(name);
    fetches.push_back(tensor);
  }
  TAGFLOW_ASSIGN(call->callable, session_->make_callable(feeds, fetches));
  return std::shared_ptr<const Call>(std::move(call));
}

}  // namespace tagflow::actors
