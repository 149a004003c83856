#include "net/transfer/identity.h"

#include <algorithm>
#include <string>
#include <utility>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "net/link/crypto.h"

namespace tagflow::net {
namespace {

Result<Digest> digest_of_build() {
  std::vector<std::string> ops = graph::OpRegistry::global().names();
  std::ranges::sort(ops);
  std::string text;
  for (const std::string& op : ops) {
    text += op;
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
