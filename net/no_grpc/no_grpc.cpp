// The stub of net/grpc in a build without gRPC.
#include "net/grpc/server.h"
#include "net/grpc/serving_doors.h"
#include "net/grpc/session_door.h"

namespace tagflow::net {

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(
    GrpcServerOptions /*options*/,
    std::vector<std::unique_ptr<GrpcService>> /*services*/) {
  return error(Code::kUnimplemented,
               "[grpc] this program was built without gRPC: install "
               "libgrpc++-dev and protobuf-compiler-grpc, and build it with "
               "-DTAGFLOW_WITH_GRPC=ON");
}

std::unique_ptr<GrpcService> make_session_door(SessionService& /*service*/) {
  return std::make_unique<GrpcService>();
}

std::vector<std::unique_ptr<GrpcService>> make_serving_doors(
    serving::ModelServer& /*server*/, serving::TaskPool& /*pool*/) {
  std::vector<std::unique_ptr<GrpcService>> doors;
  doors.push_back(std::make_unique<GrpcService>());
  return doors;
}

}  // namespace tagflow::net
