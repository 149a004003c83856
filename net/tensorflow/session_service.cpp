#include "net/tensorflow/session_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/runtime/engine.h"
#include "graph/fault.h"
#include "net/link/crypto.h"
#include "net/proto/master.pb.h"
#include "net/tensorflow/client_errors.h"
#include "net/tensorflow/client_session.h"
#include "net/tensorflow/service_parts.h"
#include "net/tensorflow/session_config.h"

namespace tagflow::net {
namespace {

constexpr size_t kClerks = 4;

Status check(const SessionLimits& limits) {
  for (const uint64_t limit :
       {uint64_t(limits.sessions), uint64_t(limits.runs), limits.bytes,
        uint64_t(limits.traces), uint64_t(limits.callables),
        uint64_t(limits.partial_runs), uint64_t(limits.signatures),
        uint64_t(limits.preparations)})
    if (limit == 0)
      return invalid_argument("[service] a limit of a service must not be 0");
  return {};
}

}  // namespace

SessionService::SessionService(Options options)
    : options_(std::move(options)),
      parts_(std::make_shared<ServiceParts>(options_.limits,
                                            options_.on_warning)) {}

Result<std::unique_ptr<SessionService>> SessionService::create(
    Options options) {
  TAGFLOW_RETURN_IF_ERROR(check(options.limits));
  return guarded("service", [&]() -> Result<std::unique_ptr<SessionService>> {
    std::unique_ptr<SessionService> service(
        new SessionService(std::move(options)));
    TAGFLOW_ASSIGN(
        service->parts_->clerks,
        Clerks::hire(kClerks, service->options_.limits.preparations));
    TAGFLOW_ASSIGN(service->root_,
                   actors::Session::create(service->options_.session));
    return service;
  });
}

SessionService::~SessionService() {
  for (const auto& [handle, session] : sessions_) session->close();
  // There are none if create() failed.
  if (parts_->clerks != nullptr) parts_->clerks->end();
}

std::span<const graph::DeviceInfo> SessionService::devices() const {
  return root_->device_infos();
}

SessionFigures SessionService::figures() const {
  const std::lock_guard lock(mutex_);
  return {sessions_.size(), parts_->runs, parts_->bytes.used()};
}

void SessionService::post(Done done, std::function<Status()> work) {
  const auto once = std::make_shared<Done>(std::move(done));
  Status posted = parts_->clerks->post([once, work = std::move(work)] {
    (*once)(for_client(guarded("service", work)));
  });
  if (!posted.ok()) (*once)(std::move(posted));
}

Result<SessionService::SessionRef> SessionService::find(
    const std::string& handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end())
    return error(Code::kAborted,
                 "[service] there is no session \"{}\": it is closed, or the "
                 "server was started anew",
                 handle);
  return found->second;
}

// --- Sessions ---------------------------------------------------------------

Result<SessionService::SessionRef> SessionService::make_room() {
  if (sessions_.size() < options_.limits.sessions) return SessionRef();
  // One that runs something is not idle.
  constexpr auto kNever = ClientSession::Clock::time_point::max();
  const auto since = [&](const auto& entry) {
    return entry.second->idle_since().value_or(kNever);
  };
  const auto oldest = std::ranges::min_element(sessions_, {}, since);
  if (since(*oldest) == kNever ||
      ClientSession::Clock::now() - since(*oldest) < options_.limits.idle)
    return error(Code::kResourceExhausted,
                 "[service] {} sessions are open, the limit", sessions_.size());
  SessionRef evicted = std::move(oldest->second);
  sessions_.erase(oldest);
  return evicted;
}

Status SessionService::open(const tensorflow::CreateSessionRequest& request,
                            tensorflow::CreateSessionResponse& response) {
  const SessionConfig config =
      read_config(request.config(), devices(), options_.session.workers);
  for (const std::string& text : config.ignored)
    parts_->warn_once("ConfigProto: " + text);
  actors::SessionOptions session = options_.session;
  session.soft_placement = session.soft_placement || config.soft_placement;
  if (config.timeout.count() > 0) session.timeout = config.timeout;
  for (const graph::Pass pass : config.unwanted)
    session.passes = session.passes.without(pass);
  if (config.isolated && session.backend != nullptr)
    return error(Code::kUnimplemented,
                 "[service] isolate_session_state: the sessions of a cluster "
                 "share their state");
  if (!config.isolated) session.state = root_->shared_state();
  TAGFLOW_ASSIGN(std::string handle, draw_token());
  TAGFLOW_ASSIGN(SessionRef made,
                 ClientSession::open(handle, std::move(session), parts_));
  TAGFLOW_ASSIGN(const int64_t version,
                 made->extend(request.graph_def(), std::nullopt));
  SessionRef evicted;
  {
    const std::lock_guard lock(mutex_);
    TAGFLOW_ASSIGN(evicted, make_room());
    sessions_.emplace(handle, std::move(made));
  }
  if (evicted != nullptr) evicted->close();
  response.set_session_handle(std::move(handle));
  response.set_graph_version(version);
  return {};
}

void SessionService::create_session(
    const tensorflow::CreateSessionRequest& request,
    tensorflow::CreateSessionResponse& response, const Token& /*token*/,
    Done done) {
  post(std::move(done),
       [this, &request, &response] { return open(request, response); });
}

void SessionService::extend_session(
    const tensorflow::ExtendSessionRequest& request,
    tensorflow::ExtendSessionResponse& response, const Token& /*token*/,
    Done done) {
  post(std::move(done), [this, &request, &response]() -> Status {
    TAGFLOW_ASSIGN(const SessionRef session, find(request.session_handle()));
    TAGFLOW_ASSIGN(
        const int64_t version,
        session->extend(request.graph_def(), request.current_graph_version()));
    response.set_new_graph_version(version);
    return {};
  });
}

void SessionService::close_session(
    const tensorflow::CloseSessionRequest& request,
    tensorflow::CloseSessionResponse& /*response*/, const Token& /*token*/,
    Done done) {
  post(std::move(done), [this, &request]() -> Status {
    SessionRef session;
    {
      const std::lock_guard lock(mutex_);
      const auto found = sessions_.find(request.session_handle());
      if (found != sessions_.end()) {
        session = std::move(found->second);
        sessions_.erase(found);
      }
    }
    if (session == nullptr) return find(request.session_handle()).status();
    session->close();
    return {};
  });
}

void SessionService::list_devices(const tensorflow::ListDevicesRequest& request,
                                  tensorflow::ListDevicesResponse& response,
                                  const Token& /*token*/, Done done) {
  Status status = guarded("service", [&]() -> Status {
    if (!request.session_handle().empty())
      TAGFLOW_RETURN_IF_ERROR(find(request.session_handle()).status());
    for (const graph::DeviceInfo& info : devices()) {
      tensorflow::DeviceAttributes& device =
          options_.session.backend == nullptr ? *response.add_local_device()
                                              : *response.add_remote_device();
      device.set_name(info.name.to_string());
      device.set_device_type(info.name.type.value_or(""));
      device.set_memory_limit(info.memory_limit);
      device.set_incarnation(info.incarnation);
    }
    return {};
  });
  done(std::move(status));
}

void SessionService::reset(const tensorflow::ResetRequest& request,
                           tensorflow::ResetResponse& /*response*/,
                           const Token& /*token*/, Done done) {
  post(std::move(done), [this, &request]() -> Status {
    std::map<std::string, SessionRef> closed;
    {
      const std::lock_guard lock(mutex_);
      closed.swap(sessions_);
    }
    for (const auto& [handle, session] : closed) session->close();
    std::vector<std::string> containers(request.container().begin(),
                                        request.container().end());
    if (containers.empty()) containers.emplace_back();  // the default one
    return root_->reset(containers);
  });
}

// --- Runs -------------------------------------------------------------------

void SessionService::run_step(const tensorflow::RunStepRequest& request,
                              tensorflow::RunStepResponse& response,
                              const Token& token, Done done) {
  // Such a client reads errors there.
  if (request.store_errors_in_response_body())
    done = [&response, done = std::move(done)](const Status& status) {
      if (status.ok()) return done(status);
      response.clear_tensor();
      response.set_status_code(tensorflow::error::Code(status.code()));
      response.set_status_error_message(std::string(status.message()));
      done({});
    };
  auto session = find(request.session_handle());
  if (!session.ok()) return done(std::move(session).status());
  (*session)->run(request, response, token, std::move(done));
}

void SessionService::partial_run_setup(
    const tensorflow::PartialRunSetupRequest& request,
    tensorflow::PartialRunSetupResponse& response, const Token& /*token*/,
    Done done) {
  post(std::move(done), [this, &request, &response]() -> Status {
    TAGFLOW_ASSIGN(const SessionRef session, find(request.session_handle()));
    TAGFLOW_ASSIGN(*response.mutable_partial_run_handle(),
                   session->set_up(request));
    return {};
  });
}

void SessionService::make_callable(
    const tensorflow::MakeCallableRequest& request,
    tensorflow::MakeCallableResponse& response, const Token& token, Done done) {
  post(std::move(done), [this, &request, &response, token]() -> Status {
    TAGFLOW_ASSIGN(const SessionRef session, find(request.session_handle()));
    TAGFLOW_ASSIGN(const int64_t handle,
                   session->make_callable(request.options(), token));
    response.set_handle(handle);
    return {};
  });
}

void SessionService::run_callable(const tensorflow::RunCallableRequest& request,
                                  tensorflow::RunCallableResponse& response,
                                  const Token& token, Done done) {
  auto session = find(request.session_handle());
  if (!session.ok()) return done(std::move(session).status());
  (*session)->run_callable(request, response, token, std::move(done));
}

void SessionService::release_callable(
    const tensorflow::ReleaseCallableRequest& request,
    tensorflow::ReleaseCallableResponse& /*response*/, const Token& /*token*/,
    Done done) {
  post(std::move(done), [this, &request]() -> Status {
    TAGFLOW_ASSIGN(const SessionRef session, find(request.session_handle()));
    session->release_callable(request.handle());
    return {};
  });
}

}  // namespace tagflow::net
