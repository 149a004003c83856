#include "devices/kernels/file/read_outputs.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace tagflow::devices {

Status read_outputs(KernelContext& context, double bytes,
                    const std::function<Result<Tensor>(int output)>& read) {
  // The time to read a byte, and its share of a page.
  constexpr double kNanosecondsPerByte = 0.5;
  const int count = context.num_outputs();
  std::mutex mutex;  // guards first
  Status first;
  std::atomic<bool> has_failed = false;
  const auto read_one = [&](int output) -> Status {
    if (context.cancelled()) return error(Code::kCancelled, "the step is over");
    TAGFLOW_ASSIGN(Tensor tensor, read(output));
    context.set_output(output, std::move(tensor));
    return {};
  };
  context.parallel_for(count, kNanosecondsPerByte * bytes / count,
                       [&](int64_t begin, int64_t end) {
                         for (auto i = int(begin); i < end && !has_failed;
                              ++i) {
                           Status status = read_one(i);
                           if (status.ok()) continue;
                           has_failed = true;
                           const std::lock_guard lock(mutex);
                           if (first.ok()) first = std::move(status);
                         }
                       });
  return first;
}

}  // namespace tagflow::devices
