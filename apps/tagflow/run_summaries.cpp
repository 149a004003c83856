#include "apps/tagflow/run_summaries.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "actors/watch/step_stats.h"
#include "actors/watch/trace.h"
#include "graph/dtype_visit.h"
#include "graph/graph.h"

namespace tagflow::apps {
namespace {

constexpr std::array<std::string_view, 8> kSummaryOps = {
    "AudioSummary", "AudioSummaryV2", "HistogramSummary", "ImageSummary",
    "MergeSummary", "ScalarSummary",  "TensorSummary",    "TensorSummaryV2"};

bool is_summary_op(const std::string& op) {
  return std::ranges::find(kSummaryOps, op) != kSummaryOps.end();
}

}  // namespace

Result<std::shared_ptr<RunSummaries>> RunSummaries::open(
    const std::string& folder, const Prepared& prepared, int64_t step,
    int64_t steps, bool is_cluster) {
  const std::shared_ptr<RunSummaries> made(
      new RunSummaries(std::min(step + 2, steps), !is_cluster));
  TAGFLOW_ASSIGN(made->writer_, actors::SummaryWriter::open(folder));
  const graph::Graph& graph = prepared.session->graph();
  for (size_t i = 0; i < prepared.fetches.size(); ++i) {
    Fetch& fetch = made->fetches_.emplace_back();
    fetch.tag = prepared.names[i].label;
    const auto endpoint = graph.endpoint(prepared.fetches[i]);
    if (!endpoint.ok()) continue;
    if (endpoint->node->op_def().is_registered &&
        is_summary_op(endpoint->node->op()))
      fetch.kind = Kind::kSummary;
    else if (visit_real(endpoint->node->output_dtypes()[size_t(endpoint->port)],
                        [](auto) {}))
      fetch.kind = Kind::kNumber;
  }
  if (step > 0) TAGFLOW_RETURN_IF_ERROR(made->writer_->resume(step + 1));
  TAGFLOW_RETURN_IF_ERROR(made->writer_->graph(graph));
  return made;
}

actors::RunOptions RunSummaries::options_of(int64_t step,
                                            actors::RunOptions options) {
  shared_trace_ = options.trace;
  return profile_.options_of(step, std::move(options));
}

Status RunSummaries::after_step(int64_t step,
                                const std::vector<Tensor>& results) {
  for (size_t i = 0; i < std::min(results.size(), fetches_.size()); ++i) {
    const Tensor& value = results[i];
    if (value.num_elements() != 1) continue;
    if (fetches_[i].kind == Kind::kSummary) {
      TAGFLOW_RETURN_IF_ERROR(
          writer_->summary(value.scalar_value<std::string>(), step));
    } else if (fetches_[i].kind == Kind::kNumber) {
      double number = 0;
      visit_real(value.dtype(), [&]<class T>(TypeTag<T>) {
        number = double(value.scalar_value<T>());
      });
      TAGFLOW_RETURN_IF_ERROR(writer_->scalar(fetches_[i].tag, number, step));
    }
  }
  return profile_.after_step(step, *writer_);
}

Status RunSummaries::close() {
  if (shared_trace_ != nullptr)
    TAGFLOW_RETURN_IF_ERROR(writer_->run_metadata(
        "all steps", actors::run_metadata(*shared_trace_, nullptr), 0));
  return writer_->close();
}

}  // namespace tagflow::apps
