// What a client asks of a master service, as values and as bytes of an object
// of the bulk link. docs/wire.md has the format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/status.h"
#include "net/wire/bytes.h"

namespace tagflow::net {

// Makes a session. What is here is in actors::SessionOptions.
struct OpenSession {
  std::string passes;  // as PassSet::to_string() writes it
  uint32_t window = 0;
  uint32_t max_call_depth = 1;
  uint32_t max_open_calls = 1;
  uint64_t max_nodes = 1;
  bool soft_placement = false;
  bool schedule_receives = true;
  std::optional<uint64_t> scatter;
  std::optional<uint64_t> seed;
  std::vector<std::string> lossy;
};

// Adds what is new in a GraphDef: nodes behind those that the session has,
// which it begins with, and functions.
struct ExtendSession {
  std::string graph;  // its bytes
};

// Compiles a signature of the session, which Runs name by the number.
struct PrepareSignature {
  uint64_t executable = 0;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

// Each Run of it is over when the next run that any client begins is, and has
// the trace of that one.
struct WatchRuns {
  uint64_t executable = 0;
};

// The answer is a Reply. The client numbers its sessions and executables by one
// count: a number is not used twice.
struct ServiceRequest {
  static constexpr std::string_view kName = "ServiceRequest";
  using Open = OpenSession;
  using Extend = ExtendSession;
  using Prepare = PrepareSignature;
  using Watch = WatchRuns;

  uint64_t session = 0;  // 0 for a Watch
  std::variant<Open, Extend, Prepare, Watch> what;

  // The number that the Reply has: of the executable, or else of the session.
  uint64_t number() const {
    if (const auto* prepare = std::get_if<Prepare>(&what))
      return prepare->executable;
    const auto* watch = std::get_if<Watch>(&what);
    return watch == nullptr ? session : watch->executable;
  }
  void write(Writer& writer) const;
  static ServiceRequest read(Reader& reader);
};

// Thread-safe.
Result<std::string> bytes_of(const ServiceRequest& request);
// DataLoss or ResourceExhausted for what is not a request. Thread-safe.
Result<ServiceRequest> parse_service_request(std::string_view bytes);

}  // namespace tagflow::net
