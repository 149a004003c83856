// Who a process of a cluster is, and what its build can run.
#pragma once

#include <memory>
#include <string_view>

#include "net/link/hello.h"

namespace tagflow::net {

// InvalidArgument if the devices of a task could not be named: the job is a
// lower-case letter and up to 63 more, digits or '_', and the number fits an
// int.
Status check_task(const Task& task);

// A new incarnation of the task, in the cluster of that name. The digest is of
// the version, the ops and the kernels of this build, with those that were
// loaded so far: a process of another build is refused. InvalidArgument if the
// secret is empty. Errors of check_task(), and of the cryptography.
// FailedPrecondition if the certificate is not that of the task, or not valid
// now.
Result<Identity> make_identity(Role role, Task task, std::string_view cluster,
                               std::string_view secret,
                               std::shared_ptr<Tls> tls = {});

}  // namespace tagflow::net
