#include "devices/files/host_access.h"

#include <cstdio>

#include "devices/files/scoped_files.h"
#include "devices/kernel.h"
#include "devices/step_resources.h"
#include "graph/op_registry.h"

namespace tagflow::devices {
namespace {

using checkpoint::FileSystem;
using checkpoint::ScopedFiles;

std::unique_ptr<FileSystem> scoped_files(const graph::OpPolicy& policy) {
  if (policy.reads.is_everywhere() && policy.writes.is_everywhere())
    return nullptr;
  return std::make_unique<ScopedFiles>(policy.reads, policy.writes);
}

}  // namespace

HostAccess::HostAccess() : HostAccess(graph::OpPolicy(), nullptr) {}

HostAccess::HostAccess(const graph::OpPolicy& policy, PrintSink print,
                       const std::optional<graph::FileScope>& shards)
    : reads_(policy.reads),
      writes_(policy.writes),
      new_shards_(shards.value_or(policy.writes)),
      print_(std::move(print)),
      shards_(std::make_shared<ScopedFiles>(shards.value_or(policy.reads),
                                            graph::FileScope::nowhere())),
      own_files_(scoped_files(policy)),
      files_(own_files_ == nullptr ? &checkpoint::local_files()
                                   : own_files_.get()) {}

HostAccess::~HostAccess() = default;

std::shared_ptr<const HostAccess> HostAccess::with_functions(
    std::weak_ptr<FunctionHost> functions) const {
  std::shared_ptr<HostAccess> made(new HostAccess(*this));
  made->functions_ = std::move(functions);
  return made;
}

void HostAccess::print(PrintStream stream, std::string_view text) const {
  if (print_) return print_(stream, text);
  std::FILE* const file = stream == PrintStream::kOutput ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

const HostAccess& host_access_of(const KernelContext& context) {
  static const auto everything = std::make_shared<const HostAccess>();
  const StepResources* const resources = context.step().resources;
  const HostAccess* const host =
      resources == nullptr ? nullptr : resources->host_access();
  return host == nullptr ? *everything : *host;
}

std::shared_ptr<const HostAccess> shared_host_access_of(
    const KernelContext& context) {
  return host_access_of(context).shared_from_this();
}

Result<const HostAccess*> files_of(const KernelContext& context) {
  const graph::Node& node = context.node();
  if (graph::OpRegistry::global().uses_files(node.op(), node.attrs()))
    return &host_access_of(context);
  return error(Code::kInternal,
               "[{}] the kernel uses files, but the definition of its op does "
               "not say so",
               node.op());
}

}  // namespace tagflow::devices
