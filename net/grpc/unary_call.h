// A unary call of gRPC, answered by a service that knows no gRPC. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "actors/options.h"
#include "graph/status.h"

namespace tagflow::net {

// The beginning of a long message. Clients refuse an answer with more than 8
// KiB behind it, where each byte may take three.
inline std::string_view cut_message(std::string_view message) {
  constexpr size_t kMost = 2500;
  if (message.size() <= kMost) return message;
  size_t end = kMost;
  // Not within a character of UTF-8.
  while (end > 0 && (uint8_t(message[end]) & 0xc0) == 0x80) --end;
  return message.substr(0, end);
}

// The codes of both are the same. Without memory there is no message.
inline grpc::Status to_grpc(const Status& status) noexcept {
  if (status.ok()) return {};
  const int number = int(status.code());
  const auto code = number <= int(Code::kUnauthenticated)
                        ? grpc::StatusCode(number)
                        : grpc::StatusCode::INTERNAL;
  try {
    return {code, std::string(cut_message(status.message()))};
  } catch (const std::bad_alloc&) {
    return {code, {}};
  }
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
