// Processes of a cluster that tests make up.
#pragma once

#include <doctest/doctest.h>

#include "net/link/crypto.h"
#include "net/link/hello.h"

namespace tagflow::net {

inline Identity identity_of(uint32_t task, Role role = Role::kWorker) {
  Identity identity;
  identity.role = role;
  identity.task = {role == Role::kMaster ? "master" : "worker", task};
  auto incarnation = draw_incarnation();
  REQUIRE(incarnation.ok());
  identity.incarnation = *incarnation;
  identity.cluster = *cluster_id("test");
  identity.digest = *sha256("build 1");
  identity.secret = "a secret that nobody knows";
  return identity;
}

inline Status admit_all(const Greeting&) { return {}; }

}  // namespace tagflow::net
