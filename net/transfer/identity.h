// Who a process of a cluster is, and what its build can run.
#pragma once

#include <string_view>

#include "net/link/hello.h"

namespace tagflow::net {

// A new incarnation of the task, in the cluster of that name. The digest is of
// the version, the ops and the kernels of this build, with those that were
// loaded so far: a process of another build is refused. Errors of the
// cryptography.
Result<Identity> make_identity(Role role, Task task, std::string_view cluster,
                               std::string_view secret);

}  // namespace tagflow::net
