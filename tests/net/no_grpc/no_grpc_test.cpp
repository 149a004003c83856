#include <doctest/doctest.h>

#include "net/grpc/server.h"

namespace tagflow::net {
namespace {

TEST_CASE("a build without gRPC says so, and what to do") {
  const Status status = GrpcServer::start({}, {}).status();
  CHECK(status.code() == Code::kUnimplemented);
  CHECK(status.message().find("libgrpc++-dev") != std::string_view::npos);
}

}  // namespace
}  // namespace tagflow::net
