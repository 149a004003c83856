#include "net/grpc/session_door.h"

#include <functional>

#include "net/grpc/unary_call.h"
#include "net/proto/master.grpc.pb.h"
#include "net/tensorflow/session_service.h"

namespace tagflow::net {
namespace {

class SessionDoor final : public GrpcService,
                          public tensorflow::MasterService::CallbackService {
 public:
  explicit SessionDoor(SessionService& service) : service_(service) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* CreateSession(Context*,
                         const tensorflow::CreateSessionRequest* request,
                         tensorflow::CreateSessionResponse* response) override {
    return answer(&SessionService::create_session, *request, *response);
  }
  Reactor* ExtendSession(Context*,
                         const tensorflow::ExtendSessionRequest* request,
                         tensorflow::ExtendSessionResponse* response) override {
    return answer(&SessionService::extend_session, *request, *response);
  }
  Reactor* PartialRunSetup(
      Context*, const tensorflow::PartialRunSetupRequest* request,
      tensorflow::PartialRunSetupResponse* response) override {
    return answer(&SessionService::partial_run_setup, *request, *response);
  }
  Reactor* RunStep(Context*, const tensorflow::RunStepRequest* request,
                   tensorflow::RunStepResponse* response) override {
    return answer(&SessionService::run_step, *request, *response);
  }
  Reactor* CloseSession(Context*,
                        const tensorflow::CloseSessionRequest* request,
                        tensorflow::CloseSessionResponse* response) override {
    return answer(&SessionService::close_session, *request, *response);
  }
  Reactor* ListDevices(Context*, const tensorflow::ListDevicesRequest* request,
                       tensorflow::ListDevicesResponse* response) override {
    return answer(&SessionService::list_devices, *request, *response);
  }
  Reactor* Reset(Context*, const tensorflow::ResetRequest* request,
                 tensorflow::ResetResponse* response) override {
    return answer(&SessionService::reset, *request, *response);
  }
  Reactor* MakeCallable(Context*,
                        const tensorflow::MakeCallableRequest* request,
                        tensorflow::MakeCallableResponse* response) override {
    return answer(&SessionService::make_callable, *request, *response);
  }
  Reactor* RunCallable(Context*, const tensorflow::RunCallableRequest* request,
                       tensorflow::RunCallableResponse* response) override {
    return answer(&SessionService::run_callable, *request, *response);
  }
  Reactor* ReleaseCallable(
      Context*, const tensorflow::ReleaseCallableRequest* request,
      tensorflow::ReleaseCallableResponse* response) override {
    return answer(&SessionService::release_callable, *request, *response);
  }

 private:
  template <class Request, class Response>
  using Method = void (SessionService::*)(const Request&, Response&,
                                          const SessionService::Token&,
                                          SessionService::Done);

  template <class Request, class Response>
  Reactor* answer(Method<Request, Response> method, const Request& request,
                  Response& response) {
    SessionService::Token token;
    return UnaryCall::start([token]() mutable { token.cancel(); },
                            [&](const UnaryCall::Done& done) {
                              // UBSan of GCC 12 breaks (service_.*method) here.
                              std::invoke(method, service_, request, response,
                                          token, done);
                            });
  }

  SessionService& service_;
};

}  // namespace

std::unique_ptr<GrpcService> make_session_door(SessionService& service) {
  return std::make_unique<SessionDoor>(service);
}

}  // namespace tagflow::net
