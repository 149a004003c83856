// Where the text goes that the ops of a graph print.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tagflow::devices {

// The stream that a graph asks for; its logs are errors.
enum class PrintStream : uint8_t { kOutput, kError };

// Receives what the ops Print and PrintV2 print, a whole text per call, with
// the end of its line. Kernels call it on any thread, several at once, so it
// must be thread-safe. It must not block for long, nor call the session. What
// it throws fails the run.
using PrintSink =
    std::function<void(PrintStream stream, std::string_view text)>;

}  // namespace tagflow::devices
