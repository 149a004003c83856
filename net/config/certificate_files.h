// The files that "tagflow cluster certs" writes.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "graph/status.h"
#include "net/config/tls_files.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// What is done about certificates that are there.
enum class Existing {
  kRefuse,   // nothing is written
  kRenew,    // the authority is used, and the others are written anew
  kReplace,  // all are written anew
};

struct CertificateFiles {
  struct Process {
    Task task;
    std::vector<std::string> hosts;  // at which it is dialled; empty: any
  };
  std::filesystem::path folder;  // made if it is not there
  std::string cluster;           // its name
  std::chrono::hours lasts{};    // of all but the authority
  std::vector<Process> processes;
  Existing existing = Existing::kRefuse;
};

// Writes ca.pem, master.pem and JOB-TASK.pem, and the keys beside them,
// "*.key", which only their owner can read. Each takes its place at once. What
// was written, in order. AlreadyExists naming a file that is there and is not
// to be; NotFound if there is no authority to renew by;
// InvalidArgument for a task or a host that cannot be one; PermissionDenied.
Result<std::vector<std::filesystem::path>> write_certificates(
    const CertificateFiles& files);

// The files in such a folder, for any process; see TlsFiles::of().
TlsFiles certificates_in(const std::filesystem::path& folder);

}  // namespace tagflow::net
