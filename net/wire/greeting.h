// Greeting: the first frame of both sides of a connection. docs/wire.md has the
// format.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "graph/status.h"
#include "net/wire/frame.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// The version of docs/wire.md.
inline constexpr uint16_t kWireVersion = 8;

// A client is one of a master service.
enum class Role : uint8_t { kMaster = 1, kWorker = 2, kClient = 3 };

using Digest = std::array<uint8_t, 32>;     // a SHA-256, or an HMAC by it
using ClusterId = std::array<uint8_t, 16>;  // half a SHA-256 of the name

struct Greeting {
  static constexpr size_t kBytes = 192;
  static constexpr size_t kLongestJob = 64;  // bytes

  uint16_t least_version = kWireVersion;
  uint16_t greatest_version = kWireVersion;
  Role role = Role::kWorker;
  Purpose purpose = Purpose::kSmall;
  uint16_t port = 0;  // on which the sender listens; 0: it does not
  Task task;
  uint64_t incarnation = 0;         // of the sender; not 0
  uint64_t wanted_incarnation = 0;  // that the receiver should have; 0: any
  uint64_t node = 0;                // a hash of the CAF node's id; 0: none
  ClusterId cluster{};
  Digest digest{};  // of the sender's build
  Digest nonce{};   // random

  // kBytes bytes. InvalidArgument if the job's name is empty, longer than
  // kLongestJob, or has a zero. Thread-safe.
  Result<std::string> write() const;
  // DataLoss for what is not a greeting; FailedPrecondition naming the versions
  // if none is common with ours. Thread-safe. REQUIRES: bytes.size() == kBytes
  static Result<Greeting> read(std::string_view bytes);
};

}  // namespace tagflow::net
