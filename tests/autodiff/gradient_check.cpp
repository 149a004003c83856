#include "tests/autodiff/gradient_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "actors/session/session.h"
#include "autodiff/gradients.h"
#include "autodiff/jvp.h"
#include "graph/builder/ops_control_flow.h"

namespace tagflow::autodiff::testing {
namespace {

using graph::Graph;
using graph::Output;
using graph::Outputs;
using graph::Scope;

// What f returns, then the gradients by xs of order 1, 2, ... If forward
// mode is checked too, the tangents of each but the last come behind, and the
// gradients of the tangents of f.
using Orders = std::vector<std::vector<Tensor>>;

// One of 2^53 numbers in [0, 1), by its number (the finalizer of SplitMix64).
double irregular(uint64_t number) {
  uint64_t z = (number + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// The real numbers that a tensor of double or complex128 is made of: by these
// alone a real loss has its derivatives.
std::span<const double> reals_of(const Tensor& tensor) {
  return {static_cast<const double*>(tensor.raw()),
          tensor.bytes() / sizeof(double)};
}
std::span<double> reals_of(Tensor& tensor) {
  return {static_cast<double*>(tensor.mutable_raw()),
          tensor.bytes() / sizeof(double)};
}

Status check_type(const Tensor& tensor, std::string_view what) {
  if (tensor.dtype() == DataType::kDouble ||
      tensor.dtype() == DataType::kComplex128)
    return {};
  return invalid_argument("{} is {}, only double and complex128 are checked",
                          what, tensor.describe());
}

Tensor zeros_like(const Tensor& tensor) {
  Tensor zeros = Tensor::make(tensor.dtype(), tensor.shape());
  std::memset(zeros.mutable_raw(), 0, zeros.bytes());
  return zeros;
}

// By which outputs become the loss sum(Re(w) Re(y) + Im(w) Im(y)).
Result<std::vector<Tensor>> weights_of(const std::vector<Tensor>& outputs,
                                       size_t order) {
  std::vector<Tensor> weights;
  uint64_t number = 1'000'000 * (order + 1);
  for (const Tensor& output : outputs) {
    TAGFLOW_RETURN_IF_ERROR(check_type(output, "an output"));
    Tensor& weight = weights.emplace_back(zeros_like(output));
    for (double& real : reals_of(weight)) real = 0.5 + irregular(number++);
  }
  return weights;
}

// Along which xs are moved in forward mode.
std::vector<Tensor> directions_of(const std::vector<Tensor>& xs) {
  std::vector<Tensor> directions;
  uint64_t number = 500'000;
  for (const Tensor& x : xs) {
    Tensor& direction = directions.emplace_back(zeros_like(x));
    for (double& real : reals_of(direction)) real = irregular(number++) - 0.4;
  }
  return directions;
}

// A graph with f and its gradients in it, and a session that has it.
class Derivatives {
 public:
  // The gradients of order k are those of the sum of all of order k - 1 (0: the
  // outputs of f), each times its `weights`, of which there are as many as
  // orders. `directions` are the tangents of xs; without them, forward mode is
  // left out.
  static Result<Derivatives> make(const Function& f,
                                  const std::vector<Tensor>& xs,
                                  const Orders& weights, bool known_shapes,
                                  const std::vector<Tensor>& directions = {}) {
    Derivatives result;
    Graph graph;
    const Scope s(graph);
    // The weights are fed as well: a constant would tell its shape.
    const auto place = [&](const Tensor& value) {
      const Output fed = graph::ops::placeholder(
          s, value.dtype(),
          known_shapes ? PartialShape(value.shape()) : PartialShape());
      result.feeds_.push_back(fed.name());
      return fed;
    };
    const auto feed = [&](const Tensor& value) {
      result.fed_.push_back(value);
      return place(value);
    };
    Outputs x;
    for (const Tensor& value : xs) x.push_back(place(value));
    std::vector<Outputs> orders{f(s, x)};
    TAGFLOW_RETURN_IF_ERROR(s.status());
    GradientOptions of_f;
    for (const std::vector<Tensor>& of_order : weights) {
      const Outputs& last = orders.back();
      Outputs ys;
      GradientOptions options;
      options.check_liveness = true;
      for (size_t i = 0; i < last.size(); ++i) {
        if (!last[i].valid()) continue;
        ys.push_back(last[i]);
        options.grad_ys.push_back(feed(of_order[i]));
      }
      if (orders.size() == 1) of_f = options;
      orders.push_back(ys.empty() ? Outputs(std::vector<Output>(x.size()))
                                  : dense_gradients(s, ys, x, options));
      TAGFLOW_RETURN_IF_ERROR(s.status().with_prefix("the gradient: "));
    }
    if (!directions.empty()) {
      Outputs tangents;
      for (const Tensor& direction : directions)
        tangents.push_back(feed(direction));
      const size_t count = weights.size();
      for (size_t order = 0; order < count; ++order)
        orders.push_back(tangents_of(s, orders[order], x, tangents));
      TAGFLOW_RETURN_IF_ERROR(s.status().with_prefix("the tangent: "));
      if (count > 1)
        orders.push_back(dense_gradients(s, orders[count + 1], x, of_f));
      TAGFLOW_RETURN_IF_ERROR(
          s.status().with_prefix("the gradient of the tangent: "));
    }
    for (const Outputs& outputs : orders) result.add(outputs);
    TAGFLOW_RETURN_IF_ERROR(result.start(graph).with_prefix("the session: "));
    return result;
  }

  // What there is no gradient of is zeros.
  Result<Orders> run(const std::vector<Tensor>& xs) const {
    std::vector<Tensor> feeds = xs;
    feeds.insert(feeds.end(), fed_.begin(), fed_.end());
    actors::RunOptions options;
    options.timeout = std::chrono::seconds(60);
    TAGFLOW_ASSIGN(const std::vector<Tensor> fetched,
                   callable_(feeds, options));
    Orders orders;
    size_t at = 0;
    for (const std::vector<bool>& of_order : connected_) {
      orders.emplace_back();
      for (size_t i = 0; i < of_order.size(); ++i)
        orders.back().push_back(of_order[i] ? fetched[at++]
                                            : zeros_like(xs[i]));
    }
    return orders;
  }

 private:
  // An output that is not there has no tangent.
  static Outputs tangents_of(const Scope& s, const Outputs& outputs,
                             const Outputs& x, const Outputs& tangents) {
    Outputs ys;
    for (const Output& output : outputs)
      if (output.valid()) ys.push_back(output);
    if (ys.empty()) return outputs;
    const Outputs made =
        jvp(s, ys, x, tangents,
            {.zeros_if_unconnected = true, .check_liveness = true});
    Outputs results;
    size_t next = 0;
    for (const Output& output : outputs)
      results.push_back(output.valid() ? made[next++] : Output());
    return results;
  }

  void add(const Outputs& outputs) {
    connected_.emplace_back();
    for (const Output& output : outputs) {
      connected_.back().push_back(output.valid());
      if (output.valid()) fetches_.push_back(output.name());
    }
  }

  Status start(const Graph& graph) {
    TAGFLOW_ASSIGN(session_, actors::Session::create({}));
    TAGFLOW_RETURN_IF_ERROR(session_->extend(graph));
    TAGFLOW_ASSIGN(callable_, session_->make_callable(feeds_, fetches_));
    return {};
  }

  std::vector<std::string> feeds_, fetches_;
  std::vector<Tensor> fed_;                   // behind the xs
  std::vector<std::vector<bool>> connected_;  // by order
  std::unique_ptr<actors::Session> session_;
  actors::Callable callable_;
};

// By order from 1 on and by x: the derivative of the loss by each real number.
using Differences = std::vector<std::vector<std::vector<double>>>;

// The loss of `up` less that of `down`: what most of their terms have in common
// cancels before it is rounded in a sum.
double loss_difference(const std::vector<Tensor>& up,
                       const std::vector<Tensor>& down,
                       const std::vector<Tensor>& weights) {
  double difference = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto u = reals_of(up[i]), d = reals_of(down[i]);
    const auto w = reals_of(weights[i]);
    for (size_t e = 0; e < w.size(); ++e) difference += w[e] * (u[e] - d[e]);
  }
  return difference;
}

Result<Differences> differences_of(const Derivatives& derivatives,
                                   const std::vector<Tensor>& xs,
                                   const Orders& weights, double step) {
  Differences differences(weights.size(),
                          std::vector<std::vector<double>>(xs.size()));
  const auto run_beside = [&](size_t i, size_t e, double distance,
                              double& x) -> Result<Orders> {
    std::vector<Tensor> moved = xs;
    moved[i] = xs[i].clone();
    x = reals_of(moved[i])[e] += distance;
    return derivatives.run(moved);
  };
  for (size_t i = 0; i < xs.size(); ++i) {
    for (size_t e = 0; e < reals_of(xs[i]).size(); ++e) {
      double above = 0, below = 0;
      TAGFLOW_ASSIGN(const Orders up, run_beside(i, e, step, above));
      TAGFLOW_ASSIGN(const Orders down, run_beside(i, e, -step, below));
      for (size_t order = 0; order < weights.size(); ++order)
        differences[order][i].push_back(
            loss_difference(up[order], down[order], weights[order]) /
            (above - below));
    }
  }
  return differences;
}

// "element 4, imaginary part": of the real number of that index.
std::string place_text(const Tensor& tensor, size_t real) {
  if (tensor.dtype() != DataType::kComplex128)
    return fmt::format("element {}", real);
  return fmt::format("element {}, {} part", real / 2,
                     real % 2 == 0 ? "real" : "imaginary");
}

// What is wrong with the gradient by one x, or "".
std::string compare(const Tensor& gradient, const Tensor& x,
                    const std::vector<double>& differences, double tolerance) {
  if (gradient.dtype() != x.dtype() || gradient.shape() != x.shape())
    return fmt::format("the gradient is {}, x is {}", gradient.describe(),
                       x.describe());
  const auto reals = reals_of(gradient);
  std::string first;
  size_t count = 0;
  for (size_t e = 0; e < reals.size(); ++e) {
    const double limit = tolerance * (1 + std::abs(differences[e]));
    // Not greater, since a NaN is wrong.
    if (std::abs(reals[e] - differences[e]) <= limit) continue;
    if (count++ == 0)
      first =
          fmt::format("{} of {}: the gradient is {}, differences give {}",
                      place_text(x, e), x.describe(), reals[e], differences[e]);
  }
  if (count < 2) return first;
  return first + fmt::format("; {} more differ", count - 1);
}

std::string compare_all(const Orders& orders, const Differences& differences,
                        const std::vector<Tensor>& xs, double tolerance,
                        std::string_view shapes) {
  std::string wrong;
  for (size_t order = 1; order <= differences.size(); ++order) {
    for (size_t i = 0; i < xs.size(); ++i) {
      const std::string what = compare(orders[order][i], xs[i],
                                       differences[order - 1][i], tolerance);
      if (!what.empty())
        wrong += fmt::format("\norder {}, shapes {}, by x[{}]: {}", order,
                             shapes, i, what);
    }
  }
  return wrong;
}

// What f and its gradients change by along the directions, by order. All xs
// move at once, so that products of them have third derivatives: Richardson's
// extrapolation of two steps does without these.
Result<Differences> differences_along(const Derivatives& derivatives,
                                      const std::vector<Tensor>& xs,
                                      const std::vector<Tensor>& directions,
                                      size_t orders, double step) {
  const auto run_at = [&](double distance) -> Result<Orders> {
    std::vector<Tensor> moved;
    for (size_t i = 0; i < xs.size(); ++i) {
      Tensor& x = moved.emplace_back(xs[i].clone());
      const auto direction = reals_of(directions[i]);
      for (size_t e = 0; e < direction.size(); ++e)
        reals_of(x)[e] += distance * direction[e];
    }
    return derivatives.run(moved);
  };
  TAGFLOW_ASSIGN(const Orders up, run_at(step));
  TAGFLOW_ASSIGN(const Orders down, run_at(-step));
  TAGFLOW_ASSIGN(const Orders near_up, run_at(step / 2));
  TAGFLOW_ASSIGN(const Orders near_down, run_at(-step / 2));
  Differences differences(orders);
  for (size_t order = 0; order < orders; ++order)
    for (size_t i = 0; i < up[order].size(); ++i) {
      const auto at = [&](const Orders& all, size_t e) {
        return reals_of(all[order][i])[e];
      };
      auto& of_output = differences[order].emplace_back();
      for (size_t e = 0; e < reals_of(up[order][i]).size(); ++e) {
        const double wide = (at(up, e) - at(down, e)) / (2 * step);
        const double narrow = (at(near_up, e) - at(near_down, e)) / step;
        of_output.push_back((4 * narrow - wide) / 3);
      }
    }
  return differences;
}

// Of the results of a graph with forward mode in it.
std::string compare_forward(const Orders& results, size_t orders,
                            const Differences& differences,
                            const std::vector<Tensor>& xs, double tolerance,
                            std::string_view shapes) {
  std::string wrong;
  const auto compare_list = [&](const std::vector<Tensor>& tangents,
                                const std::vector<Tensor>& like, size_t order,
                                std::string_view mode) {
    for (size_t i = 0; i < tangents.size(); ++i) {
      const std::string what =
          compare(tangents[i], like[i], differences[order][i], tolerance);
      if (!what.empty())
        wrong += fmt::format("\n{}, shapes {}, of result {}: {}", mode, shapes,
                             i, what);
    }
  };
  for (size_t order = 0; order < orders; ++order)
    compare_list(results[orders + 1 + order], results[order], order,
                 order == 0 ? "forward" : "forward over reverse");
  if (orders > 1)
    compare_list(results[2 * orders + 1], xs, 1, "reverse over forward");
  return wrong;
}

}  // namespace

Result<std::string> wrong_gradients(const Function& f,
                                    const std::vector<Tensor>& xs,
                                    const CheckOptions& options) {
  for (const Tensor& x : xs) TAGFLOW_RETURN_IF_ERROR(check_type(x, "an x"));
  // How large the outputs are, and so the weights, is known when f has run.
  TAGFLOW_ASSIGN(const Derivatives alone, Derivatives::make(f, xs, {}, true));
  TAGFLOW_ASSIGN(const Orders outputs, alone.run(xs));
  Orders weights;
  for (size_t order = 0; order < size_t(options.order); ++order) {
    TAGFLOW_ASSIGN(weights.emplace_back(),
                   weights_of(order == 0 ? outputs[0] : xs, order));
  }
  TAGFLOW_ASSIGN(const Derivatives known,
                 Derivatives::make(f, xs, weights, true));
  TAGFLOW_ASSIGN(const Orders gradients, known.run(xs));
  TAGFLOW_ASSIGN(const Differences differences,
                 differences_of(known, xs, weights, options.step));
  std::string wrong =
      compare_all(gradients, differences, xs, options.tolerance, "known");
  const std::vector<Tensor> directions = directions_of(xs);
  TAGFLOW_ASSIGN(
      const Differences along,
      differences_along(known, xs, directions, weights.size(), options.step));
  for (const bool known_shapes : {true, false}) {
    if (!known_shapes && !options.unknown_shapes) continue;
    const std::string shapes = known_shapes ? "known" : "unknown";
    Result<Derivatives> all =
        Derivatives::make(f, xs, weights, known_shapes, directions);
    if (!all.ok())
      return all.status().with_prefix(fmt::format("with shapes {}, ", shapes));
    TAGFLOW_ASSIGN(const Orders results, all->run(xs));
    if (!known_shapes)
      wrong += compare_all(results, differences, xs, options.tolerance, shapes);
    wrong += compare_forward(results, weights.size(), along, xs,
                             options.tolerance, shapes);
  }
  return wrong;
}

void check_gradients(const Function& f, const std::vector<Tensor>& xs,
                     const CheckOptions& options, int line) {
  const Result<std::string> wrong = wrong_gradients(f, xs, options);
  const std::string what = wrong.ok() ? *wrong : wrong.status().to_string();
  CHECK_MESSAGE(what.empty(), "line ", line, ": ", what);
}

std::vector<Tensor> gradients_of(const Function& f,
                                 const std::vector<Tensor>& xs) {
  Graph graph;
  const Scope s(graph);
  Outputs x;
  std::vector<actors::Feed> feeds;
  for (const Tensor& value : xs) {
    x.push_back(graph::ops::placeholder(s, value.dtype(), value.shape()));
    feeds.emplace_back(x[x.size() - 1].name(), value);
  }
  const Outputs gradients = dense_gradients(s, f(s, x), x);
  if (!s.ok()) FAIL(s.status().to_string());
  std::vector<std::string> fetches;
  for (const Output& gradient : gradients)
    if (gradient.valid()) fetches.push_back(gradient.name());
  auto session = actors::Session::create({}).value();
  const Status extended = session->extend(graph);
  if (!extended.ok()) FAIL(extended.to_string());
  const auto fetched = session->run(feeds, fetches);
  if (!fetched.ok()) FAIL(fetched.status().to_string());
  std::vector<Tensor> results;
  size_t at = 0;
  for (size_t i = 0; i < xs.size(); ++i)
    results.push_back(gradients[i].valid() ? (*fetched)[at++]
                                           : zeros_like(xs[i]));
  return results;
}

Tensor values(const Dims& shape, double low, double high) {
  static const void* test_case = nullptr;
  static uint64_t number = 0;
  if (const void* now = doctest::getContextOptions()->currentTest;
      now != test_case) {
    test_case = now;
    number = 0;
  }
  Tensor result = Tensor::make(DataType::kDouble, shape);
  for (double& value : result.mutable_flat<double>())
    value = low + (high - low) * irregular(number++);
  return result;
}

}  // namespace tagflow::autodiff::testing
