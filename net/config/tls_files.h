// The files with the certificates of a process.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "graph/status.h"
#include "net/wire/messages.h"

namespace tagflow::net {

class Tls;  // net/link/tls.h

// What stands in paths for the process: "worker-0", or "master".
inline constexpr char kProcessPattern[] = "{process}";
// Of a task; of a master, if the job is empty. Thread-safe.
std::string process_name(const Task& task);

// Files in PEM.
struct TlsFiles {
  std::filesystem::path ca;           // of the authorities
  std::filesystem::path certificate;  // of the process
  std::filesystem::path key;          // that only its owner can read

  // Those of one process: its name instead of the pattern.
  TlsFiles of(const std::string& process) const;
  bool empty() const {
    return ca.empty() && certificate.empty() && key.empty();
  }
};

// Reads them; null if there are none. They are read again before a connection
// if they have changed, so that certificates can be renewed while the process
// runs. InvalidArgument if one of the three is missing, and as Tls::make();
// PermissionDenied if others than its owner may read or write the key; others
// of read_small_file(), naming the file. Thread-safe.
Result<std::shared_ptr<Tls>> load_tls(const TlsFiles& files);

}  // namespace tagflow::net
