// HostAccess: the files that the kernels of a session may use, where they
// print, and who calls functions for them.
//
//   TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
//   TAGFLOW_ASSIGN(const std::string path, host->path_to_read(name));
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "devices/print_sink.h"
#include "graph/op_policy.h"
#include "graph/status.h"

namespace tagflow::checkpoint {
class FileSystem;
}

namespace tagflow::devices {

class FunctionHost;  // devices/function_host.h
class KernelContext;

// Immutable and thread-safe. That of a session is owned by shared pointers.
class HostAccess : public std::enable_shared_from_this<HostAccess> {
 public:
  // All files, and the streams of the process.
  HostAccess();
  // An empty sink: the streams of the process. Shards of checkpoints may be
  // written in `shards`, and read there; without that, where ops may write and
  // read.
  HostAccess(const graph::OpPolicy& policy, PrintSink print,
             const std::optional<graph::FileScope>& shards = std::nullopt);
  ~HostAccess();
  HostAccess& operator=(const HostAccess&) = delete;

  // Who calls functions for datasets. Null if nobody does, or no longer.
  std::shared_ptr<FunctionHost> functions() const { return functions_.lock(); }
  // The same files and streams, with somebody who calls functions.
  std::shared_ptr<const HostAccess> with_functions(
      std::weak_ptr<FunctionHost> functions) const;

  // The path to open for one of the graph. Errors of FileScope::resolve().
  Result<std::string> path_to_read(const std::string& path) const {
    return reads_.resolve(path);
  }
  Result<std::string> path_to_write(const std::string& path) const {
    return writes_.resolve(path);
  }
  // As path_to_write(), for a file that is made, renamed or removed, and not
  // one that a link of this name leads to.
  Result<std::string> name_to_write(const std::string& path) const {
    return writes_.resolve_name(path);
  }
  // As name_to_write(), for a shard of a checkpoint that another process saves.
  Result<std::string> shard_to_write(const std::string& path) const {
    return new_shards_.resolve_name(path);
  }
  // What reads such shards: each path is one of the graph, and no file can be
  // changed by it. Lives as long as this object.
  checkpoint::FileSystem& shards_to_read() const { return *shards_; }
  // Files for readers and writers of checkpoints: each path is one of the
  // graph. Lives as long as this object.
  checkpoint::FileSystem& files() const { return *files_; }

  void print(PrintStream stream, std::string_view text) const;

 private:
  HostAccess(const HostAccess&) = default;

  const graph::FileScope reads_, writes_, new_shards_;
  const PrintSink print_;
  std::weak_ptr<FunctionHost> functions_;
  const std::shared_ptr<checkpoint::FileSystem> shards_;
  const std::shared_ptr<checkpoint::FileSystem> own_files_;  // may be null
  checkpoint::FileSystem* const files_;
};

// That of the kernel's session; outside of a session it allows everything.
// Valid during the step. Thread-safe.
const HostAccess& host_access_of(const KernelContext& context);
// The same for what outlives the step. Not null.
std::shared_ptr<const HostAccess> shared_host_access_of(
    const KernelContext& context);
// The same for kernels that use files. Internal if the node's op was added to
// the OpRegistry without a FileUse that says so: OpPolicy relies on it.
Result<const HostAccess*> files_of(const KernelContext& context);

}  // namespace tagflow::devices
