#include "apps/tagflow/run_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "actors/runtime/iteration_view.h"
#include "apps/shared/io/file.h"
#include "apps/shared/program/terminal.h"
#include "apps/tagflow/model/results.h"
#include "graph/status_exception.h"

namespace tagflow::apps {
namespace {

using actors::Location;

// Where the output of a number of that port is: a Switch has one value, for
// either port.
const Tensor* output_of(std::span<const Tensor> outputs, int port) {
  if (outputs.empty()) return nullptr;
  const Tensor& value = outputs[std::min(size_t(port), outputs.size() - 1)];
  return value.valid() ? &value : nullptr;
}

}  // namespace

Result<std::shared_ptr<TensorWatch>> TensorWatch::make(
    const std::vector<std::string>& choices, const RunNames& names,
    std::string out, bool is_quiet) {
  auto watch = std::make_shared<TensorWatch>();
  watch->out_ = std::move(out);
  watch->is_quiet_ = is_quiet;
  for (const std::string& text : choices) {
    TAGFLOW_ASSIGN(WatchChoice choice, WatchChoice::parse(text));
    TAGFLOW_RETURN_IF_ERROR(names.check_tensor(choice.node, choice.port));
    std::string node = choice.node;
    watch->watched_
        .emplace(std::piecewise_construct,
                 std::forward_as_tuple(std::move(node)),
                 std::forward_as_tuple())
        ->second.choice = std::move(choice);
  }
  if (watch->out_.empty()) return watch;
  TAGFLOW_RETURN_IF_ERROR(io::make_folder(watch->out_));
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
