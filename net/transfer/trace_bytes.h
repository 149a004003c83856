// What a worker has recorded of a step, as bytes. docs/wire.md has the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/watch/trace.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::net {

// What a worker records of a step at most. So much is read well within the
// silence after which a link is lost.
inline constexpr uint64_t kMostTraceWords = uint64_t{4} << 20;
// The longest trace that is sent or read, in bytes.
inline constexpr uint64_t kMostTraceBytes = uint64_t{64} << 20;

// The part in at most `most` bytes: the last events of tracks that have no room
// count as dropped, and all of them if names and frames alone are too long.
// REQUIRES: the events are of its frames, as those of Trace::part() are. May
// throw std::bad_alloc.
std::string write_trace(const actors::TracePart& part,
                        uint64_t most = kMostTraceBytes);

// The part, with its start on the clock of the process that wrote it. DataLoss
// naming the byte at fault; ResourceExhausted if it is too long.
Result<actors::TracePart> parse_trace(std::string_view bytes);

// The bytes as a Done has them: a tensor of uint8. None without memory.
// REQUIRES: as those of write_trace()
std::optional<Tensor> tensor_of(const actors::TracePart& part);
// As parse_trace(); DataLoss if it is no such tensor.
Result<actors::TracePart> part_of(const Tensor& tensor);

}  // namespace tagflow::net
