#include "net/transfer/identity.h"

#include <limits>
#include <string>
#include <utility>

#include "devices/kernel_registry.h"
#include "graph/device_name.h"
#include "graph/op_registry.h"
#include "net/link/crypto.h"
#include "net/link/tls.h"

namespace tagflow::net {
namespace {

Result<Digest> digest_of_build() {
  const graph::OpRegistry& ops = graph::OpRegistry::global();
  std::string text = TAGFLOW_VERSION "\n";
  const auto add = [&text](const auto& named) {
    for (const auto& each : named) text += ' ' + each.name;
    text += ';';
  };
  for (const std::string& op : ops.names()) {
    text += op;
    if (const graph::OpDef* def = ops.find_or_null(op)) {
      add(def->inputs);
      add(def->outputs);
      add(def->attrs);
    }
    for (const std::string& type :
         devices::KernelRegistry::global().types_of(op))
      text += ' ' + type;
    text += '\n';
  }
  return sha256(text);
}

}  // namespace

Status check_task(const Task& task) {
  // The name must be one in "/job:NAME", too, as it is.
  const auto name = graph::DeviceName::parse("/job:" + task.job);
  if (!name.ok() || name->job != task.job ||
      task.job.size() > Greeting::kLongestJob)
    return invalid_argument(
        "[net] the job {:?} is not a lower-case letter and up to {} more, "
        "digits or '_'",
        task.job.substr(0, Greeting::kLongestJob), Greeting::kLongestJob - 1);
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  if (task.index > kMost)
    return invalid_argument("[net] the number of task {} is greater than {}",
                            task.index, kMost);
  return {};
}

Result<Identity> make_identity(Role role, Task task, std::string_view cluster,
                               std::string_view secret,
                               std::shared_ptr<Tls> tls) {
  if (secret.empty())
    return invalid_argument("[net] the secret of a cluster must not be empty");
  TAGFLOW_RETURN_IF_ERROR(check_task(task));
  Identity identity;
  identity.role = role;
  identity.task = std::move(task);
  identity.secret = secret;
  TAGFLOW_ASSIGN(identity.incarnation, draw_incarnation());
  TAGFLOW_ASSIGN(identity.cluster, cluster_id(cluster));
  TAGFLOW_ASSIGN(identity.digest, digest_of_build());
  if (tls == nullptr) return identity;
  const bool is_worker = role == Role::kWorker;
  TAGFLOW_RETURN_IF_ERROR(tls->check_own(certified_name(
      cluster, is_worker ? identity.task.job : "", identity.task.index)));
  identity.tls = std::move(tls);
  identity.cluster_name = cluster;
  return identity;
}

}  // namespace tagflow::net
