#include "apps/tagflow/model/numerics_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "actors/runtime/iteration_view.h"
#include "graph/dtype_visit.h"
#include "graph/status_exception.h"

namespace tagflow::apps {
namespace {

using actors::Location;

std::string port_name(const graph::Node& node, int port) {
  return fmt::format("{}:{}", node.name(), port);
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

bool is_loop_constant(const graph::Node& node) {
  const auto is_constant = node.attr<bool>("is_constant");
  return node.op() == "Enter" && is_constant.ok() && *is_constant;
}

}  // namespace

std::string NumericsCheck::describe_input(const Location& location,
                                          const graph::Endpoint& input) const {
  const std::string name = port_name(*input.node, input.port);
  for (const int64_t iteration : {location.tag.iteration, kAll}) {
    const auto values = values_.find({location.instance, iteration});
    if (values == values_.end()) continue;
    // Of a Switch, either output is its only value.
    for (const std::string& known : {name, port_name(*input.node, 0)}) {
      const auto found = values->second.find(known);
      if (found != values->second.end())
        return fmt::format("{} {}", name, found->second);
    }
  }
  return name;
}

void NumericsCheck::on_fired(const Location& location, const graph::Node& node,
                             std::span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid()) continue;
    const NumberFacts facts = facts_of(outputs[i]);
    std::string text = describe_facts(outputs[i], facts);
    const std::lock_guard lock(mutex_);
    if (facts.bad < 0) {
      values_[{location.instance, location.tag.iteration}]
             [port_name(node, int(i))] = std::move(text);
      continue;
    }
    std::string inputs;
    for (const graph::Endpoint& input : node.inputs())
      inputs += fmt::format("{}{}", inputs.empty() ? "" : ", ",
                            describe_input(location, input));
    throw StatusException(error(
        Code::kInvalidArgument,
        "[--check-numerics] output {} of node \"{}\" ({}) in {} is {}; {}", i,
        node.name(), node.op(), tag_text(location), text,
        inputs.empty() ? "it has no inputs" : "its inputs: " + inputs));
  }
}

void NumericsCheck::on_arrive(const Location& location, const graph::Node& node,
                              const Tensor& value, bool dead) {
  if (dead || !value.valid()) return;
  std::string text = describe_facts(value, facts_of(value));
  const int64_t iteration =
      is_loop_constant(node) ? kAll : location.tag.iteration;
  const std::lock_guard lock(mutex_);
  values_[{location.instance, iteration}][port_name(node, 0)] = std::move(text);
}

void NumericsCheck::on_iteration_end(const Location& location) {
  const std::lock_guard lock(mutex_);
  values_.erase({location.instance, location.tag.iteration});
}

void NumericsCheck::on_frame_end(const Location& location) {
  const std::lock_guard lock(mutex_);
  values_.erase({location.instance, kAll});
}

}  // namespace tagflow::apps
