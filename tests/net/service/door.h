// A master service of workers, behind its door, and connections to it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/service/master_door.h"
#include "net/service/remote_master.h"
#include "tests/net/master/sockets.h"

namespace tagflow::net {

// A door of the cluster of tests.
inline std::unique_ptr<MasterDoor> door_of(MasterService& service,
                                           MasterDoorOptions options = {}) {
  options.cluster = kTestCluster;
  options.secret = kTestSecret;
  return graph::testing::must(MasterDoor::start(service, std::move(options)));
}
inline RemoteMasterOptions address_of(const MasterDoor& door) {
  return {.address = {"localhost", door.port()},
          .name = kTestCluster,
          .secret = kTestSecret};
}
// The options of a new client's sessions.
inline actors::SessionOptions client_at(const RemoteMasterOptions& address) {
  actors::SessionOptions options;
  options.backend = graph::testing::must(RemoteMaster::connect(address));
  return options;
}

// So many workers of one CPU.
struct Served {
  explicit Served(int workers, ServiceLimits limits = {},
                  bool has_local_door = true, bool has_tls = false) {
    actors::SessionOptions session;
    session.backend =
        std::make_shared<Sockets>(workers, "cpu:1", 1, has_local_door, has_tls);
    service = graph::testing::must(
        MasterService::create({std::move(session), limits}));
    MasterDoorOptions options;
    options.has_local_door = has_local_door;
    if (has_tls) tls = options.tls = master_tls();
    door = door_of(*service, std::move(options));
  }
  RemoteMasterOptions address(const std::string& secret = kTestSecret) const {
    RemoteMasterOptions options = address_of(*door);
    options.secret = secret;
    options.tls = tls;
    return options;
  }
  // The options of a new client's sessions.
  actors::SessionOptions client() const { return client_at(address()); }

  std::shared_ptr<Tls> tls;  // null: without
  std::unique_ptr<MasterService> service;
  std::unique_ptr<MasterDoor> door;
};

}  // namespace tagflow::net
