#include "net/tensorflow/trace_shelf.h"

#include "graph/fault.h"

namespace tagflow::net {
namespace {

constexpr size_t kWordsOfRun = size_t{1} << 18;

}  // namespace

Result<std::shared_ptr<actors::Trace>> TraceShelf::take() {
  return guarded("service", [&]() -> Result<std::shared_ptr<actors::Trace>> {
    const std::lock_guard lock(mutex_);
    std::erase_if(taken_, [](const auto& trace) { return trace.expired(); });
    if (taken_.size() >= most_)
      return error(Code::kResourceExhausted,
                   "[service] {} runs are being recorded, the limit",
                   taken_.size());
    auto trace = std::make_shared<actors::Trace>(kWordsOfRun);
    taken_.push_back(trace);
    return trace;
  });
}

void TraceShelf::keep(std::shared_ptr<actors::Trace> trace) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(trace));
}

}  // namespace tagflow::net
