// What the control plane of a cluster says, as values and as bytes, which CAF
// carries. docs/wire.md has the format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "net/wire/bytes.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// The longest of these messages, in bytes. A catalogue of 1,000 workers with
// one device each is shorter.
inline constexpr size_t kLongestControl = size_t{256} << 10;

// A worker, in the catalogue of its cluster.
struct CatalogueEntry {
  static constexpr std::string_view kName = "CatalogueEntry";
  Task task;
  // Where others reach it. An empty host, from a worker: at the address that
  // its connection comes from; from a directory: where its asker has found it.
  std::string host;
  uint16_t port = 0;
  uint64_t incarnation = 0;
  std::vector<std::string> devices;  // their full names

  void write(Writer& writer) const;
  static CatalogueEntry read(Reader& reader);
};

// The workers of a cluster, the directory first.
struct Catalogue {
  static constexpr std::string_view kName = "Catalogue";
  std::vector<CatalogueEntry> members;

  void write(Writer& writer) const;
  static Catalogue read(Reader& reader);
};

// What a worker has to do.
struct Load {
  static constexpr std::string_view kName = "Load";
  // A channel to another process.
  struct Link {
    std::string peer;            // "/job:worker/task:1", or "the master"
    uint64_t round_trip_ns = 0;  // of the last Ping; 0: none yet
    uint64_t bytes_in = 0;       // since the channel was made
    uint64_t bytes_out = 0;
  };
  uint64_t incarnation = 0;
  uint64_t uptime_ns = 0;  // of the process
  bool has_master = false;
  bool is_leaving = false;  // it ends when its steps are over
  uint64_t steps_running = 0;
  uint64_t steps_finished = 0;  // of this incarnation
  uint64_t executables = 0;
  // In use on the devices that count: those with a limit, and accelerators.
  uint64_t tensor_bytes = 0;
  uint64_t memory_bytes = 0;  // of the process, resident
  std::vector<Link> links;

  void write(Writer& writer) const;
  static Load read(Reader& reader);
};

// ResourceExhausted if there are more than kLongestControl. Thread-safe.
template <class Message>
Result<std::string> control_bytes_of(const Message& message);
// DataLoss or ResourceExhausted for what is not such a message. Thread-safe.
template <class Message>
Result<Message> parse_control(std::string_view bytes);

}  // namespace tagflow::net
