// Cluster files: which processes a cluster has, and where they listen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "net/config/tls_files.h"
#include "net/transfer/pairing.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// A file is JSON:
//   {"name": "mine", "secret_file": "mine.secret",
//    "tasks": [{"job": "worker", "task": 0, "address": "localhost:4000",
//               "devices": "cpu:2"}],
//    "tls": {"ca": "certs/ca.pem", "cert": "certs/{process}.pem",
//            "key": "certs/{process}.key"}}
// "name", "secret_file", "devices" and "tls" may be left out.
struct ClusterFile {
  struct Entry {
    Task task;
    Address address;      // at which its worker listens
    std::string devices;  // that its worker has, as WorkerOptions::devices
  };
  std::string name = "tagflow";       // of the cluster
  std::filesystem::path secret_file;  // empty: the file names none
  std::vector<Entry> tasks;           // at least one, no task twice
  TlsFiles tls;  // empty: the file names none; see TlsFiles::of()

  // Null: the cluster has no such task.
  const Entry* find(const Task& task) const;
};

// "HOST:PORT" or "[IPV6]:PORT". The host may be empty, and the port 0.
// InvalidArgument for anything else. Thread-safe.
Result<Address> parse_address(std::string_view text);
// The text that parse_address() takes.
std::string format_address(const Address& address);

// InvalidArgument naming the part that is wrong, as "tasks[1].address": what is
// not JSON, unknown keys, keys that are there twice, wrong types, a task or an
// address that is there twice, a task that cannot be one. Thread-safe.
Result<ClusterFile> parse_cluster_file(std::string_view json);
// What parse_cluster_file() takes.
std::string format_cluster_file(const ClusterFile& file);
// The file at a path; a relative path in it begins beside it. All errors
// name the file: those of parse_cluster_file(), NotFound, PermissionDenied, and
// ResourceExhausted if it has more than 1 MiB.
Result<ClusterFile> read_cluster_file(const std::filesystem::path& path);

}  // namespace tagflow::net
