#include "apps/bench/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>

#include "apps/bench/process_figures.h"

namespace tagflow::apps {

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double percentile(std::vector<double> values, double rank) {
  const auto place = size_t(std::ceil(rank * double(values.size())));
  const size_t index = std::clamp<size_t>(place, 1, values.size()) - 1;
  const auto at = values.begin() + std::ptrdiff_t(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Result<double> seconds_of(const std::function<Status()>& body) {
  const Clock::time_point start = Clock::now();
  TAGFLOW_RETURN_IF_ERROR(body());
  const std::chrono::duration<double> time = Clock::now() - start;
  return time.count();
}

Result<double> median_of(int repeats,
                         const std::function<Result<double>()>& measure) {
  std::vector<double> values;
  for (int i = 0; i <= repeats; ++i) {
    TAGFLOW_ASSIGN(const double value, measure());
    if (i > 0) values.push_back(value);
  }
  return median(std::move(values));
}

Result<Compared> compare_in_turns(
    int repeats, const std::function<Result<double>()>& first,
    const std::function<Result<double>()>& second) {
  std::vector<double> firsts, seconds, ratios;
  for (int i = 0; i <= repeats; ++i) {
    TAGFLOW_ASSIGN(const double one, first());
    TAGFLOW_ASSIGN(const double other, second());
    if (i == 0) continue;
    firsts.push_back(one);
    seconds.push_back(other);
    ratios.push_back(other / one);
  }
  return Compared{median(std::move(firsts)), median(std::move(seconds)),
                  median(std::move(ratios))};
}

Result<PreparedRun> PreparedRun::make(const BenchGraph& graph,
                                      const actors::SessionOptions& options) {
  PreparedRun run;
  TAGFLOW_ASSIGN(run.session_, actors::Session::create(options));
  TAGFLOW_RETURN_IF_ERROR(run.session_->extend(graph.graph));
  if (!graph.init.empty())
    TAGFLOW_RETURN_IF_ERROR(run.session_->run({}, {}, graph.init).status());
  TAGFLOW_ASSIGN(run.call_, run.session_->make_callable(
                                graph.feeds, graph.fetches, graph.targets));
  return run;
}

Status PreparedRun::run(std::span<const Tensor> feeds,
                        const actors::RunOptions& options) {
  return call_(feeds, options).status();
}

Result<std::vector<Tensor>> PreparedRun::results(
    std::span<const Tensor> feeds) {
  return call_(feeds);
}

Result<double> PreparedRun::time(std::span<const Tensor> feeds,
                                 const actors::RunOptions& options) {
  return seconds_of([&] { return run(feeds, options); });
}

Result<double> PreparedRun::seconds_per_trip(int trips) {
  const Tensor none = Tensor::scalar<int32_t>(0);
  const Tensor all = Tensor::scalar<int32_t>(trips);
  TAGFLOW_ASSIGN(const double base, time({&none, 1}));
  TAGFLOW_ASSIGN(const double full, time({&all, 1}));
  return (full - base) / trips;
}

Result<Took> PreparedRun::time_async(std::span<const Tensor> feeds,
                                     const actors::RunOptions& options) const {
  // The answer's thread may still be in set_value() when this one goes on.
  const auto promise = std::make_shared<std::promise<Result<Took>>>();
  auto answer = promise->get_future();
  const double cpu_start = cpu_seconds();
  const Clock::time_point start = Clock::now();
  call_.run_async(feeds, options, [=](auto results, auto) {
    const std::chrono::duration<double> time = Clock::now() - start;
    const Took took{time.count(), cpu_seconds() - cpu_start};
    promise->set_value(results.ok() ? Result<Took>(took)
                                    : Result<Took>(results.status()));
  });
  return answer.get();
}

Result<double> PreparedRun::seconds(std::span<const Tensor> feeds, int repeats,
                                    int inner) {
  return median_of(repeats, [&] { return mean_seconds(feeds, inner); });
}

Result<double> PreparedRun::mean_seconds(std::span<const Tensor> feeds,
                                         int inner) {
  TAGFLOW_ASSIGN(const double all, seconds_of([&]() -> Status {
                   for (int k = 0; k < inner; ++k)
                     TAGFLOW_RETURN_IF_ERROR(run(feeds));
                   return {};
                 }));
  return all / inner;
}

}  // namespace tagflow::apps
