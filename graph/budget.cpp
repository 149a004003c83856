#include "graph/budget.h"

#include <utility>

namespace tagflow::graph {

Budget::Budget(Options options) : options_(std::move(options)) {}

void Budget::begin(std::string stage) {
  stage_ = std::move(stage);
  nodes_ = 0;
  next_look_ = kPeriod;
}

Status Budget::look() {
  next_look_ = nodes_ + kPeriod;
  const auto text = [this] {
    return nodes_ == 0 ? stage_
                       : fmt::format("{} ({} nodes so far)", stage_, nodes_);
  };
  if (options_.is_cancelled && options_.is_cancelled())
    return error(Code::kCancelled, "[session] the run was cancelled while {}",
                 text());
  if (options_.timeout.count() <= 0 ||
      Clock::now() - options_.start <= options_.timeout)
    return {};
  return error(Code::kDeadlineExceeded,
               "[session] the time-out of {} s passed while {}",
               std::chrono::duration<double>(options_.timeout).count(), text());
}

}  // namespace tagflow::graph
