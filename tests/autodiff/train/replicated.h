// A model of which replicas train parts of one batch.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "autodiff/train/layer.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "autodiff/train/replicas.h"
#include "graph/builder/builder.h"

namespace tagflow::autodiff::testing {

inline constexpr int64_t kExamples = 12;  // of the whole batch

inline std::vector<std::string> cpus(int count) {
  std::vector<std::string> names;
  for (int k = 0; k < count; ++k)
    names.push_back("/device:CPU:" + std::to_string(k));
  return names;
}

// The loss of some examples: rows of a table, of which some come twice, and
// two layers. Its variables are of floats, a table and two kernels and biases.
inline Output embedding_loss(const graph::Scope& s,
                             const graph::VariableScope& vars, int64_t begin,
                             int64_t count) {
  std::vector<int64_t> ids;
  std::vector<float> wanted;
  for (int64_t i = begin; i < begin + count; ++i) {
    ids.push_back(i * i % 5);
    wanted.push_back(float(i % 3) - 0.5F);
  }
  const Output rows = layers::embedding(
      s, vars, Tensor::of<int64_t>({count}, std::span(ids)),
      {.rows = 6,
       .columns = 3,
       .initializer = graph::initializers::random_uniform(-1, 1, {1, 2})});
  const Output hidden = layers::dense(
      s, vars, rows,
      {.units = 7,
       .activation = graph::ops::tanh,
       .kernel_initializer = graph::initializers::glorot_uniform({3, 4})});
  const Output guess = layers::dense(
      s, vars, hidden,
      {.units = 1,
       .kernel_initializer = graph::initializers::glorot_uniform({5, 6}),
       .name = "out"});
  return losses::mean_squared_error(
      s, guess, Tensor::of<float>({count, 1}, std::span(wanted)));
}

inline ReplicaLoss part_of_embedding(size_t replicas) {
  const int64_t count = kExamples / int64_t(replicas);
  return [count](const Replica& replica) {
    return embedding_loss(replica.s, replica.vars,
                          int64_t(replica.index) * count, count);
  };
}

// A session over devices of this process, or of a backend.
class DeviceSession {
 public:
  DeviceSession(const graph::Scope& s, actors::SessionOptions options) {
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    auto session = actors::Session::create(options);
    REQUIRE_MESSAGE(session.ok(), session.status().to_string());
    session_ = std::move(session).value();
    const Status extended = session_->extend(s.graph());
    REQUIRE_MESSAGE(extended.ok(), extended.to_string());
  }

  actors::Session& session() { return *session_; }
  void run(const std::string& operation) { run({}, {operation}); }
  std::vector<Tensor> run(const std::vector<std::string>& fetches,
                          const std::vector<std::string>& operations) {
    auto results = session_->run({}, fetches, operations);
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    return std::move(results).value();
  }

 private:
  std::unique_ptr<actors::Session> session_;
};

}  // namespace tagflow::autodiff::testing
