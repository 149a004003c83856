// SessionService: what TensorFlow's clients ask of a server of sessions.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "actors/session/session.h"
#include "net/tensorflow/figures.h"
#include "net/tensorflow/session_limits.h"

// The messages of net/proto/master.proto.
namespace tensorflow {
class CloseSessionRequest;
class CloseSessionResponse;
class CreateSessionRequest;
class CreateSessionResponse;
class ExtendSessionRequest;
class ExtendSessionResponse;
class ListDevicesRequest;
class ListDevicesResponse;
class MakeCallableRequest;
class MakeCallableResponse;
class PartialRunSetupRequest;
class PartialRunSetupResponse;
class ReleaseCallableRequest;
class ReleaseCallableResponse;
class ResetRequest;
class ResetResponse;
class RunCallableRequest;
class RunCallableResponse;
class RunStepRequest;
class RunStepResponse;
}  // namespace tensorflow

namespace tagflow::net {

class ClientSession;
struct ServiceParts;

// The protocol without sockets: a door brings the messages. A client is whoever
// knows the handle of a session, which is drawn at random; a session lives
// until it is closed. All sessions share one state, that is, containers with
// variables and queues, unless their configuration wants one of their own.
//
// A method answers by `done`, which it calls once, on any thread, maybe before
// it returns; `done` must not block or throw. The request, and the response,
// which is to be empty, live until then. A cancelled token ends what is under
// way as Cancelled. Errors are in the form for clients, among them Aborted for
// a session that does not exist any more, so that clients open another one, and
// ResourceExhausted beyond a limit. Thread-safe.
class SessionService {
 public:
  struct Options {
    // Of all sessions: the devices or the backend, the policy, where they
    // print.
    actors::SessionOptions session;
    SessionLimits limits;
    // Receives what of a client's options has no effect, each text once.
    // Thread-safe; may be empty.
    std::function<void(const std::string&)> on_warning;
  };
  using Done = std::function<void(Status)>;
  using Token = actors::CancelToken;

  // InvalidArgument if a limit is 0; errors of Session::create().
  static Result<std::unique_ptr<SessionService>> create(Options options);
  // Closes all sessions: their runs are cancelled. REQUIRES: no call is made
  // any more
  ~SessionService();
  SessionService(const SessionService&) = delete;
  SessionService& operator=(const SessionService&) = delete;

  void create_session(const tensorflow::CreateSessionRequest& request,
                      tensorflow::CreateSessionResponse& response,
                      const Token& token, Done done);
  void extend_session(const tensorflow::ExtendSessionRequest& request,
                      tensorflow::ExtendSessionResponse& response,
                      const Token& token, Done done);
  void partial_run_setup(const tensorflow::PartialRunSetupRequest& request,
                         tensorflow::PartialRunSetupResponse& response,
                         const Token& token, Done done);
  void run_step(const tensorflow::RunStepRequest& request,
                tensorflow::RunStepResponse& response, const Token& token,
                Done done);
  void close_session(const tensorflow::CloseSessionRequest& request,
                     tensorflow::CloseSessionResponse& response,
                     const Token& token, Done done);
  void list_devices(const tensorflow::ListDevicesRequest& request,
                    tensorflow::ListDevicesResponse& response,
                    const Token& token, Done done);
  // Closes all sessions, too, as clients expect.
  void reset(const tensorflow::ResetRequest& request,
             tensorflow::ResetResponse& response, const Token& token,
             Done done);
  void make_callable(const tensorflow::MakeCallableRequest& request,
                     tensorflow::MakeCallableResponse& response,
                     const Token& token, Done done);
  void run_callable(const tensorflow::RunCallableRequest& request,
                    tensorflow::RunCallableResponse& response,
                    const Token& token, Done done);
  void release_callable(const tensorflow::ReleaseCallableRequest& request,
                        tensorflow::ReleaseCallableResponse& response,
                        const Token& token, Done done);

  std::span<const graph::DeviceInfo> devices() const;
  SessionFigures figures() const;

 private:
  using SessionRef = std::shared_ptr<ClientSession>;

  explicit SessionService(Options options);
  Status open(const tensorflow::CreateSessionRequest& request,
              tensorflow::CreateSessionResponse& response);
  Result<SessionRef> find(const std::string& handle) const;
  // Makes room for one more, if there is none: takes out one that is idle.
  // REQUIRES: the lock is held
  Result<SessionRef> make_room();
  // Has a clerk do what takes long, and answers.
  void post(Done done, std::function<Status()> work);

  Options options_;
  const std::shared_ptr<ServiceParts> parts_;
  std::unique_ptr<actors::Session> root_;       // has the state, and no graph
  mutable std::mutex mutex_;                    // guards the next
  std::map<std::string, SessionRef> sessions_;  // by handle
};

}  // namespace tagflow::net
