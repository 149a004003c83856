#include "net/transfer/identity.h"

#include <string>
#include <utility>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "net/link/crypto.h"

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

Result<Identity> make_identity(Role role, Task task, std::string_view cluster,
                               std::string_view secret) {
  Identity identity;
  identity.role = role;
  identity.task = std::move(task);
  identity.secret = secret;
  TAGFLOW_ASSIGN(identity.incarnation, draw_incarnation());
  TAGFLOW_ASSIGN(identity.cluster, cluster_id(cluster));
  TAGFLOW_ASSIGN(identity.digest, digest_of_build());
  return identity;
}

}  // namespace tagflow::net
