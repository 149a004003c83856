#include "apps/tagflow/conform/judge.h"

#include <fmt/ranges.h>

#include "apps/shared/program/owned_session.h"
#include "apps/tagflow/conform/case.h"
#include "apps/tagflow/conform/compare.h"
#include "apps/tagflow/conform/needs.h"
#include "apps/tagflow/model/gradient_graph.h"
#include "graph/file/graphdef.h"
#include "graph/storage_type.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;
using actors::Session;

// The feeds and expected results of one run of the case.
struct RunData {
  std::vector<actors::Feed> feeds;
  std::vector<Tensor> expect;
};

// The value of a feed. The file of a quantized one has numpy's type.
Result<Tensor> load_feed(const graph::Graph& graph, const std::string& port,
                         const fs::path& path) {
  TAGFLOW_ASSIGN(Tensor value, load_case_tensor(path));
  const Result<graph::Endpoint> endpoint = graph.endpoint(port);
  if (!endpoint.ok()) return value;  // the run reports it
  const DataType dtype =
      endpoint->node->output_dtypes()[size_t(endpoint->port)];
  const bool is_stored =
      dtype != value.dtype() && storage_type(dtype) == value.dtype();
  return is_stored ? value.with_dtype(dtype) : value;
}

Result<RunData> load_run(const graph::Graph& graph, const fs::path& folder,
                         const CaseRun& run) {
  RunData data;
  for (const auto& [port, file] : run.feeds) {
    TAGFLOW_ASSIGN(Tensor value, load_feed(graph, port, folder / file));
    data.feeds.emplace_back(port, std::move(value));
  }
  for (const std::string& file : run.expect) {
    TAGFLOW_ASSIGN(Tensor value, load_case_tensor(folder / file));
    data.expect.push_back(std::move(value));
  }
  return data;
}

// "InvalidArgumentError" for kInvalidArgument, as the cases call it.
std::string recorded_name(Code code) {
  return std::string(code_name(code)) + "Error";
}

Status judge_failure(const CaseRun& run, const Status& status) {
  if (status.ok()) {
    return invalid_argument("it succeeded, but should fail with {}",
                            run.error_code);
  }
  if (recorded_name(status.code()) == run.error_code) return {};
  return invalid_argument("it should fail with {}, but did so with {}",
                          run.error_code, status.to_string());
}

Status judge_run(Session& session, const fs::path& folder, const CaseRun& run,
                 const std::optional<actors::CancelToken>& cancel) {
  TAGFLOW_ASSIGN(RunData data, load_run(session.graph(), folder, run));
  actors::RunOptions options;
  options.cancel = cancel;
  // The case does not have the time limit of the run.
  const bool expires = run.error_code == recorded_name(Code::kDeadlineExceeded);
  if (session.options().timeout.count() == 0)
    options.timeout = expires ? kExpiringRunLimit : kRunLimit;
  Result<std::vector<Tensor>> results =
      session.run(data.feeds, run.fetches, run.targets, options);
  if (!run.error_code.empty()) return judge_failure(run, results.status());
  TAGFLOW_RETURN_IF_ERROR(results.status());
  for (size_t i = 0; i < data.expect.size(); ++i) {
    TAGFLOW_RETURN_IF_ERROR(compare((*results)[i], data.expect[i])
                                .with_prefix(run.fetches[i] + ": "));
  }
  return {};
}

// Adds the gradients that the case requests.
Status extend_graph(graph::Graph& graph, const Case& the_case) {
  if (!the_case.gradients) return {};
  const CaseGradients& wanted = *the_case.gradients;
  return add_gradients(graph, {wanted.ys, wanted.xs, wanted.order}).status();
}

Status run_all(const fs::path& folder, const Case& the_case,
               const Result<graph::Graph>& graph,
               const std::vector<std::string>& initializers,
               const actors::SessionOptions& options,
               const std::optional<actors::CancelToken>& cancel) {
  TAGFLOW_ASSIGN(OwnedSession session, Session::create(options));
  // A rejected graph also counts for the runs that must fail.
  const Status imported = graph.ok() ? session->extend(*graph) : graph.status();
  if (imported.ok() && !initializers.empty())
    TAGFLOW_RETURN_IF_ERROR(session->run({}, {}, initializers).status());
  for (size_t i = 0; i < the_case.runs.size(); ++i) {
    const CaseRun& run = the_case.runs[i];
    Status status = imported.ok() ? judge_run(*session, folder, run, cancel)
                    : run.error_code.empty() ? imported
                                             : judge_failure(run, imported);
    if (!status.ok()) {
      return std::move(status).with_prefix(fmt::format("run {}: ", i));
    }
  }
  return {};
}

Verdict failed(std::string name, const Status& status) {
  return {
      Outcome::kFailed, std::move(name), status.to_string(), {}, status.code()};
}

Verdict skipped(std::string name, std::set<std::string> missing) {
  std::string what = fmt::format("needs {}", fmt::join(missing, ", "));
  return {Outcome::kSkipped, std::move(name), std::move(what),
          std::move(missing)};
}

}  // namespace

Verdict judge_case(const fs::path& folder,
                   const actors::SessionOptions& options,
                   const std::optional<actors::CancelToken>& cancel) {
  const std::string folder_name =
      folder.has_filename() ? folder.filename().string()
                            : folder.parent_path().filename().string();
  Result<Case> the_case = load_case(folder);
  if (!the_case.ok()) return failed(folder_name, the_case.status());
  const Result<graph::GraphFile> file = graph::load_file(folder / "graph.pb");
  if (!file.ok()) return failed(the_case->name, file.status());

  std::vector<graph::NodeDef> nodes = needed_nodes(*file, *the_case);
  std::set<std::string> missing = missing_ops(nodes, file->library);
  if (!missing.empty()) return skipped(the_case->name, std::move(missing));
  std::vector<std::string> initializers;
  if (the_case->gradients) initializers = initial_assignments(nodes);
  Result<graph::Graph> graph =
      graph::build_graph({std::move(nodes), file->library, file->producer, {}});
  if (graph.ok()) {
    Status extended = extend_graph(*graph, *the_case);
    if (extended.code() == Code::kUnimplemented)
      return {Outcome::kSkipped,
              the_case->name,
              extended.to_string(),
              {"(gradients)"}};
    if (!extended.ok()) graph = std::move(extended);
  }
  const Status status =
      run_all(folder, *the_case, graph, initializers, options, cancel);
  if (!status.ok()) return failed(the_case->name, status);
  return {Outcome::kPassed, the_case->name, "", {}};
}

}  // namespace tagflow::apps
