// A master service of workers, behind its door, and connections to it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "net/service/master_door.h"
#include "net/service/remote_master.h"
#include "tests/net/master/sockets.h"

namespace tagflow::net {

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
    options.cluster = kTestCluster;
    options.secret = kTestSecret;
    options.has_local_door = has_local_door;
    if (has_tls) tls = options.tls = master_tls();
    door =
        graph::testing::must(MasterDoor::start(*service, std::move(options)));
  }
  RemoteMasterOptions address(const std::string& secret = kTestSecret) const {
    return {.address = {"localhost", door->port()},
            .name = kTestCluster,
            .secret = secret,
            .tls = tls};
  }
  // The options of a new client's sessions.
  actors::SessionOptions client() const {
    actors::SessionOptions options;
    options.backend = graph::testing::must(RemoteMaster::connect(address()));
    return options;
  }

  std::shared_ptr<Tls> tls;  // null: without
  std::unique_ptr<MasterService> service;
  std::unique_ptr<MasterDoor> door;
};

}  // namespace tagflow::net
