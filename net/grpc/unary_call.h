// A unary call of gRPC, answered by a service that knows no gRPC. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

#include "actors/options.h"
#include "graph/status.h"

namespace tagflow::net {

// The codes of both are the same.
inline grpc::Status to_grpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const int code = int(status.code());
  return {code <= int(Code::kUnauthenticated) ? grpc::StatusCode(code)
                                              : grpc::StatusCode::INTERNAL,
          std::string(status.message())};
}

// Frees itself when the call is over. A client that gives up, or whose deadline
// passes, cancels the token.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // begin(token, done) starts the work; it calls done(Status) once, on any
  // thread, maybe at once.
  template <class Begin>
  static grpc::ServerUnaryReactor* start(Begin&& begin) {
    auto* const call = new UnaryCall();
    begin(call->token_,
          [call](const Status& status) { call->Finish(to_grpc(status)); });
    return call;
  }

 private:
  void OnCancel() override { token_.cancel(); }
  void OnDone() override { delete this; }

  actors::CancelToken token_;
};

}  // namespace tagflow::net
