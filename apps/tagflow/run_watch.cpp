#include "apps/tagflow/run_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <tuple>
#include <utility>

#include "actors/runtime/iteration_view.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/model/results.h"
#include "graph/dtype_visit.h"
#include "graph/function.h"
#include "graph/status_exception.h"

namespace tagflow::apps {
namespace {

using actors::Location;

std::string port_name(const graph::Node& node, int port) {
  return fmt::format("{}:{}", node.name(), port);
}

// Where the output of a number of that port is: a Switch has one value, for
// either port.
const Tensor* output_of(std::span<const Tensor> outputs, int port) {
  if (outputs.empty()) return nullptr;
  const Tensor& value = outputs[std::min(size_t(port), outputs.size() - 1)];
  return value.valid() ? &value : nullptr;
}

// The first number of a tensor that is not finite, and what finite ones are.
struct NumberFacts {
  int64_t bad = -1;  // its element; -1: none
  bool is_nan = false;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(int64_t i, double number) {
    if (std::isfinite(number)) {
      low = std::min(low, number);
      high = std::max(high, number);
    } else if (bad < 0) {
      bad = i;
      is_nan = std::isnan(number);
    }
  }
};

NumberFacts facts_of(const Tensor& tensor) {
  NumberFacts facts;
  const auto visit = [&]<class T>(TypeTag<T>) {
    int64_t i = 0;
    for (const T& element : tensor.flat<T>()) {
      if constexpr (std::is_same_v<T, Complex64> ||
                    std::is_same_v<T, Complex128>) {
        facts.add(i, double(element.real()));
        facts.add(i++, double(element.imag()));
      } else {
        facts.add(i++, double(element));
      }
    }
  };
  if (!visit_real(tensor.dtype(), visit)) visit_complex(tensor.dtype(), visit);
  return facts;
}

std::string_view name_of_bad(const NumberFacts& facts) {
  return facts.is_nan ? "NaN" : "an infinity";
}

std::string describe_facts(const Tensor& tensor, const NumberFacts& facts) {
  std::string text = tensor.describe();
  if (facts.low <= facts.high)
    text += facts.low == facts.high
                ? fmt::format(" of {}", facts.low)
                : fmt::format(" from {} to {}", facts.low, facts.high);
  if (facts.bad >= 0)
    text +=
        fmt::format(" with {} at element {}", name_of_bad(facts), facts.bad);
  return text;
}

}  // namespace

Result<std::shared_ptr<TensorWatch>> TensorWatch::make(
    const std::vector<std::string>& choices, const graph::Graph& graph,
    std::string out, bool is_quiet) {
  auto watch = std::make_shared<TensorWatch>();
  watch->out_ = std::move(out);
  watch->is_quiet_ = is_quiet;
  for (const std::string& text : choices) {
    TAGFLOW_ASSIGN(WatchChoice choice, WatchChoice::parse(text));
    const auto endpoint = graph.endpoint(choice.tensor());
    if (!endpoint.ok() &&
        (graph.library().empty() || graph.find(choice.node) != nullptr))
      return endpoint.status();
    std::string node = choice.node;
    watch->watched_
        .emplace(std::piecewise_construct,
                 std::forward_as_tuple(std::move(node)),
                 std::forward_as_tuple())
        ->second.choice = std::move(choice);
  }
  if (watch->out_.empty()) return watch;
  std::error_code failure;
  std::filesystem::create_directories(watch->out_, failure);
  if (failure)
    return error(Code::kPermissionDenied, "cannot make the folder \"{}\": {}",
                 watch->out_, failure.message());
  return watch;
}

std::vector<std::string> TensorWatch::unseen() const {
  std::vector<std::string> names;
  for (const auto& [node, watched] : watched_)
    if (!watched.is_seen) names.push_back(watched.choice.tensor());
  return names;
}

void TensorWatch::on_fired(const Location& location, const graph::Node& node,
                           std::span<const Tensor> outputs) {
  const auto [begin, end] = watched_.equal_range(node.name());
  if (begin == end) return;
  const std::string tag = tag_text(location);
  for (auto it = begin; it != end; ++it) {
    Watched& watched = it->second;
    if (!watched.choice.matches(tag, location.tag.iteration)) continue;
    const Tensor* const value = output_of(outputs, watched.choice.port);
    if (value == nullptr) continue;
    watched.is_seen = true;
    show(watched, tag, *value);
  }
}

void TensorWatch::show(const Watched& watched, const std::string& tag,
                       const Tensor& value) {
  const std::string name = fmt::format("{}@{}", watched.choice.tensor(), tag);
  const FetchName fetch{name, file_stem(name)};
  const std::span<const FetchName> names(&fetch, 1);
  const std::span<const Tensor> values(&value, 1);
  const std::lock_guard lock(mutex_);
  if (!out_.empty()) {
    Status written = write_results(out_, names, values).status();
    // The run ends by it.
    if (!written.ok())
      throw StatusException(std::move(written).with_prefix("[--watch-out] "));
    return;
  }
  std::string text = format_results(names, values);
  if (!is_quiet_) return print_text(text);
  text.pop_back();
  spdlog::info("{}", text);
}

std::string NumericsCheck::describe_input(const graph::Endpoint& input) const {
  const std::string name = port_name(*input.node, input.port);
  // Of a Switch, either output is its only value.
  for (const std::string& known : {name, port_name(*input.node, 0)}) {
    const auto found = last_.find(known);
    if (found != last_.end()) return fmt::format("{} {}", name, found->second);
  }
  return name;
}

void NumericsCheck::on_fired(const Location& location, const graph::Node& node,
                             std::span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid()) continue;
    const NumberFacts facts = facts_of(outputs[i]);
    const std::lock_guard lock(mutex_);
    if (facts.bad < 0) {
      last_[port_name(node, int(i))] = describe_facts(outputs[i], facts);
      continue;
    }
    std::string inputs;
    for (const graph::Endpoint& input : node.inputs())
      inputs += fmt::format("{}{}", inputs.empty() ? "" : ", ",
                            describe_input(input));
    throw StatusException(error(
        Code::kInvalidArgument,
        "[--check-numerics] output {} of node \"{}\" ({}) in {} is {}; {}", i,
        node.name(), node.op(), tag_text(location),
        describe_facts(outputs[i], facts),
        inputs.empty() ? "it has no inputs" : "its inputs: " + inputs));
  }
}

void NumericsCheck::on_arrive(const Location&, const graph::Node& node,
                              const Tensor& value, bool dead) {
  if (dead || !value.valid()) return;
  std::string text = describe_facts(value, facts_of(value));
  const std::lock_guard lock(mutex_);
  last_[port_name(node, 0)] = std::move(text);
}

void ObserverGroup::on_fire(const Location& location, const graph::Node& node,
                            bool dead) {
  for (const auto& one : all_) one->on_fire(location, node, dead);
}

void ObserverGroup::on_fired(const Location& location, const graph::Node& node,
                             std::span<const Tensor> outputs) {
  for (const auto& one : all_) one->on_fired(location, node, outputs);
}

void ObserverGroup::on_compute(const Location& location,
                               const graph::Node& node) {
  for (const auto& one : all_) one->on_compute(location, node);
}

void ObserverGroup::on_computed(const Location& location,
                                const graph::Node& node) {
  for (const auto& one : all_) one->on_computed(location, node);
}

void ObserverGroup::on_arrive(const Location& location, const graph::Node& node,
                              const Tensor& value, bool dead) {
  for (const auto& one : all_) one->on_arrive(location, node, value, dead);
}

void ObserverGroup::on_iteration_start(const Location& location) {
  for (const auto& one : all_) one->on_iteration_start(location);
}

void ObserverGroup::on_iteration_end(const Location& location) {
  for (const auto& one : all_) one->on_iteration_end(location);
}

void ObserverGroup::on_frame_start(const Location& location,
                                   const Location& caller) {
  for (const auto& one : all_) one->on_frame_start(location, caller);
}

void ObserverGroup::on_frame_end(const Location& location) {
  for (const auto& one : all_) one->on_frame_end(location);
}

}  // namespace tagflow::apps
