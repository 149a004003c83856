#include "net/serving/batch_options.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "graph/fault.h"
#include "net/proto/serving/config.pb.h"
#include "net/serving/text_proto.h"

namespace tagflow::net::serving {
namespace {

constexpr int64_t kMostOfOption = int64_t{1} << 40;

}  // namespace

int64_t BatchOptions::rows_of_a_run() const {
  return splits_large && max_execution_batch_size > 0 ? max_execution_batch_size
                                                      : max_batch_size;
}

int64_t BatchOptions::rows_of_a_request() const {
  if (!splits_large) return max_batch_size;
  // More could not wait.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t run = rows_of_a_run();
  const int64_t most =
      run > kMost / max_enqueued_batches ? kMost : run * max_enqueued_batches;
  return max_execution_batch_size > 0 ? std::min(max_batch_size, most) : most;
}

Status BatchOptions::validate() const {
  const auto check = [](const char* name, int64_t value, int64_t least) {
    if (value >= least && value <= kMostOfOption) return Status();
    return invalid_argument("[batch] {} is {}, and must be from {} to {}", name,
                            value, least, kMostOfOption);
  };
  TAGFLOW_RETURN_IF_ERROR(check("max_batch_size", max_batch_size, 1));
  TAGFLOW_RETURN_IF_ERROR(
      check("batch_timeout_micros", batch_timeout.count(), 0));
  TAGFLOW_RETURN_IF_ERROR(
      check("max_enqueued_batches", max_enqueued_batches, 1));
  TAGFLOW_RETURN_IF_ERROR(check("num_batch_threads", num_batch_threads, 0));
  if (max_execution_batch_size != 0 &&
      (!splits_large || max_execution_batch_size < 1 ||
       max_execution_batch_size > max_batch_size))
    return invalid_argument(
        "[batch] max_execution_batch_size is {}: it is for "
        "enable_large_batch_splitting, and from 1 to max_batch_size, {}",
        max_execution_batch_size, max_batch_size);
  const auto& sizes = allowed_batch_sizes;
  if (sizes.empty()) return {};
  if (sizes.front() < 1 ||
      std::ranges::adjacent_find(sizes, std::greater_equal()) != sizes.end())
    return invalid_argument(
        "[batch] allowed_batch_sizes must be positive, and each larger than "
        "the one before");
  if (sizes.back() == rows_of_a_run()) return {};
  return invalid_argument(
      "[batch] the last one of allowed_batch_sizes is {}, and must be "
      "{}, {}",
      sizes.back(),
      max_execution_batch_size > 0 ? "max_execution_batch_size"
                                   : "max_batch_size",
      rows_of_a_run());
}

Result<BatchOptions> parse_batch_options(std::string_view text) {
  return guarded("batch", [&]() -> Result<BatchOptions> {
    tensorflow::serving::BatchingParameters proto;
    TAGFLOW_RETURN_IF_ERROR(
        parse_text_proto(text, &proto).with_prefix("[batch] the parameters: "));
    if (proto.pad_variable_length_inputs())
      return error(Code::kUnimplemented,
                   "[batch] pad_variable_length_inputs: only rows of the same "
                   "shape share a batch here");
    BatchOptions options;
    if (proto.has_max_batch_size())
      options.max_batch_size = proto.max_batch_size().value();
    if (proto.has_batch_timeout_micros())
      options.batch_timeout =
          std::chrono::microseconds(proto.batch_timeout_micros().value());
    if (proto.has_max_enqueued_batches())
      options.max_enqueued_batches = proto.max_enqueued_batches().value();
    if (proto.has_num_batch_threads())
      options.num_batch_threads = proto.num_batch_threads().value();
    options.splits_large = proto.enable_large_batch_splitting().value();
    if (proto.has_max_execution_batch_size())
      options.max_execution_batch_size =
          proto.max_execution_batch_size().value();
    options.allowed_batch_sizes.assign(proto.allowed_batch_sizes().begin(),
                                       proto.allowed_batch_sizes().end());
    TAGFLOW_RETURN_IF_ERROR(options.validate());
    return options;
  });
}

}  // namespace tagflow::net::serving
