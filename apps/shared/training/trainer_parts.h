// What the loop of a training and its evaluations share.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "apps/shared/training/trainer.h"

namespace tagflow::training {

// The tensors of all metrics of the lists.
std::vector<std::string> tensors_of(
    std::initializer_list<const std::vector<Metric>*> lists);

// Fetches the metrics, and then `more`. Errors of Session::make_callable().
Result<actors::Callable> make_callable(
    actors::Session& session, const Phase& phase,
    const std::vector<std::string>& targets,
    const std::vector<std::string>& more = {});

// Runs a batch of the phase, and returns its metrics; `more`, if not null, gets
// what else the call fetches. Errors of the run; InvalidArgument if a metric is
// not a float scalar.
Result<std::vector<float>> run_batch(const actors::Callable& call,
                                     const Phase& phase,
                                     std::span<const Tensor> batch,
                                     const actors::RunOptions& run,
                                     std::vector<Tensor>* more = nullptr);

// How many examples a batch of the phase has.
int64_t count_rows(const Phase& phase, std::span<const Tensor> batch);

// Means of metrics over batches, by the numbers of their examples.
class Means {
 public:
  explicit Means(size_t metrics) : sums_(metrics) {}

  void add(std::span<const float> values, int64_t rows) {
    for (size_t i = 0; i < sums_.size(); ++i)
      sums_[i] += double(values[i]) * double(rows);
    rows_ += rows;
  }
  int64_t rows() const { return rows_; }
  // The means, and begins anew. NaN if there was nothing.
  std::vector<float> take() {
    std::vector<float> means;
    for (double& sum : sums_) {
      means.push_back(float(sum / double(rows_)));
      sum = 0;
    }
    rows_ = 0;
    return means;
  }

 private:
  std::vector<double> sums_;
  int64_t rows_ = 0;
};

}  // namespace tagflow::training
