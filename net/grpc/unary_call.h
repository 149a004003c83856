// A unary call of gRPC, answered by a service that knows no gRPC. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "graph/fault.h"
#include "graph/status.h"
#include "graph/status_text.h"

namespace tagflow::net {

// Of a message, of which the middle is left out: its beginning says what is
// wrong, and its end which node. Clients refuse an answer with more than 8 KiB
// behind it, where each byte may take three.
inline constexpr size_t kMostMessageBytes = 2500;

// The codes of both are the same. Without memory there is no message.
inline grpc::Status to_grpc(const Status& status) noexcept {
  if (status.ok()) return {};
  const int number = int(status.code());
  const auto code = number <= int(Code::kUnauthenticated)
                        ? grpc::StatusCode(number)
                        : grpc::StatusCode::INTERNAL;
  try {
    return {code, cut_middle(status.message(), kMostMessageBytes, 0.5)};
  } catch (const std::bad_alloc&) {
    return {code, {}};
  }
}

// Frees itself when the call is over. A client that gives up, or whose deadline
// passes, cancels it.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  using Done = std::function<void(const Status&)>;

  // begin(done) starts the work; it calls done once, on any thread, maybe at
  // once. What it throws is the answer, if there is none before. `cancel` is
  // called if the client goes.
  template <class Begin>
  static grpc::ServerUnaryReactor* start(std::function<void()> cancel,
                                         Begin&& begin) {
    auto* const call = new UnaryCall(std::move(cancel));
    const auto is_finished = std::make_shared<std::atomic<bool>>(false);
    const Done done = [call, is_finished](const Status& status) {
      if (!is_finished->exchange(true)) call->Finish(to_grpc(status));
    };
    const Status begun = guarded("grpc", [&] { begin(done); });
    if (!begun.ok()) done(begun);
    return call;
  }

 private:
  explicit UnaryCall(std::function<void()> cancel)
      : cancel_(std::move(cancel)) {}
  void OnCancel() override { cancel_(); }
  void OnDone() override { delete this; }

  const std::function<void()> cancel_;
};

}  // namespace tagflow::net
