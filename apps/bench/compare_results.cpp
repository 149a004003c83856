#include "apps/bench/compare_results.h"

#include <algorithm>
#include <optional>

#include "apps/bench/largest_difference.h"
#include "apps/bench/local_cluster.h"
#include "apps/bench/stopwatch.h"
#include "apps/shared/io/npy.h"

namespace tagflow::apps {

std::string result_file(const std::string& results, size_t number) {
  return fmt::format("{}.{}.npy", results, number);
}

Result<double> compare_results(const CompareEntry& entry,
                               const std::string& results,
                               const EngineOptions& options) {
  const std::vector<std::string>& names = entry.graph.compared;
  TAGFLOW_ASSIGN(actors::SessionOptions session, to_session_options(options));
  std::optional<LocalCluster> cluster;
  if (entry.workers > 0) {
    TAGFLOW_ASSIGN(cluster,
                   LocalCluster::start(entry.workers, options.workers));
    session.backend = cluster->master();
  }
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(entry.graph, session));
  TAGFLOW_ASSIGN(actors::Callable call,
                 run.session().make_callable(entry.graph.feeds, names, {}));
  const Tensor trips = Tensor::scalar<int32_t>(entry.trips);
  TAGFLOW_ASSIGN(const std::vector<Tensor> own,
                 call({&trips, entry.graph.feeds.size()}));
  double most = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    TAGFLOW_ASSIGN(const Tensor theirs, io::read_npy(result_file(results, i)));
    TAGFLOW_ASSIGN(const double off, largest_difference(own[i], theirs));
    if (!(off <= kCompareTolerance))
      return error(Code::kDataLoss,
                   "[bench] {}: \"{}\" differs from TensorFlow's by {:.2g} of "
                   "its largest element, more than {:.2g}",
                   entry.name, names[i], off, kCompareTolerance);
    most = std::max(most, off);
  }
  return most;
}

}  // namespace tagflow::apps
