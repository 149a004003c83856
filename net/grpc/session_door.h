// The door of gRPC to a session service: what TensorFlow's clients call.
#pragma once

#include <memory>

#include "net/grpc/server.h"

namespace tagflow::net {

class SessionService;  // net/tensorflow/session_service.h

// tensorflow.MasterService. The service outlives the door. A call that its
// client gives up is cancelled; one with a deadline ends by it.
std::unique_ptr<GrpcService> make_session_door(SessionService& service);

}  // namespace tagflow::net
