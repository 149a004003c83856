#include "net/tensorflow/client_call.h"

#include <utility>

#include "devices/state/resource_manager.h"
#include "graph/fault.h"
#include "graph/file/tensor_proto.h"
#include "net/tensorflow/client_errors.h"
#include "net/tensorflow/session_config.h"

namespace tagflow::net {

std::string ClientSession::Signature::key() const {
  std::string text;
  for (const auto* names : {&feeds, &fetches, &targets}) {
    for (const std::string& name : *names) {
      const uint32_t size = uint32_t(name.size());
      text.append(reinterpret_cast<const char*>(&size), sizeof(size));
      text += name;
    }
    text.append(sizeof(uint32_t), '\xff');
  }
  return text;
}

ClientSession::Call::Call(std::shared_ptr<ClientSession> session,
                          ByteCount::Share bytes,
                          const actors::CancelToken& run_token,
                          const Done& done)
    : token(run_token),
      session_(std::move(session)),
      bytes_(std::move(bytes)),
      done_(done) {
  ++session_->open_calls_;
  ++session_->parts_->runs;
}

ClientSession::Call::~Call() {
  session_->last_use_ = Clock::now().time_since_epoch().count();
  --session_->open_calls_;
  --session_->parts_->runs;
}

Result<std::shared_ptr<ClientSession::Call>> ClientSession::Call::begin(
    std::shared_ptr<ClientSession> session, ByteCount::Share bytes,
    const actors::CancelToken& token, const Done& done) {
  const ServiceParts& parts = *session->parts_;
  return guarded("service", [&]() -> Result<std::shared_ptr<Call>> {
    std::shared_ptr<Call> call(
        new Call(std::move(session), std::move(bytes), token, done));
    if (const size_t runs = parts.runs; runs > parts.limits.runs)
      return error(Code::kResourceExhausted,
                   "[service] {} runs are not answered yet, the limit",
                   runs - 1);
    return call;
  });
}

actors::RunOptions ClientSession::Call::run_options() const {
  return {.timeout = timeout_of(options.timeout_in_ms()),
          .cancel = token,
          .trace = trace_.get()};
}

tensorflow::RunMetadata* ClientSession::Call::metadata() {
  return step != nullptr ? step->mutable_metadata()
                         : callable->mutable_metadata();
}

Status ClientSession::Call::record() {
  if (options.trace_level() == tensorflow::RunOptions::NO_TRACE) return {};
  began_ = std::chrono::system_clock::now();
  session_->drop_old_traces();
  TAGFLOW_ASSIGN(trace_, session_->parts_->traces.take());
  return {};
}

void ClientSession::Call::start(ReadyToRun prepared) {
  prepared_ = std::move(prepared);
  prepared_->callable.run_async(
      feeds, run_options(),
      [self = shared_from_this()](auto result, const actors::RunStats&) {
        self->answer(self->prepared_->fetches, std::move(result));
      });
}

void ClientSession::Call::answer(const std::vector<std::string>& fetches,
                                 Result<std::vector<Tensor>> result) {
  Status status = guarded("service", [&]() -> Status {
    if (trace_ != nullptr && result.ok())
      write_step_stats(*trace_, session_->home(), began_, *metadata());
    if (trace_ != nullptr && !result.ok())
      session_->keep_trace(std::move(trace_), prepared_);
    if (!result.ok()) return session_->or_closed(result.status());
    return write(fetches, *result);
  });
  finish(status);
}

// A handle means nothing outside of this process, but its client sees what it
// stands for, as at TensorFlow's server.
void ClientSession::Call::write_handles(const Tensor& handles,
                                        tensorflow::TensorProto* proto) const {
  proto->set_dtype(tensorflow::DT_RESOURCE);
  graph::shape_to_proto(handles.shape(), proto->mutable_tensor_shape());
  for (const ResourceHandle& handle : handles.flat<ResourceHandle>()) {
    tensorflow::ResourceHandleProto& written =
        *proto->add_resource_handle_val();
    written.set_device(session_->home());
    const auto* state = dynamic_cast<const devices::StateObject*>(handle.get());
    if (state != nullptr && !state->key().name.empty()) {
      written.set_container(state->key().container);
      written.set_name(state->key().name);
      written.set_maybe_type_name(state->key().kind);
    } else if (handle.get() != nullptr) {
      written.set_name(handle.get()->describe());
    }
  }
}

Status ClientSession::Call::write(const std::vector<std::string>& fetches,
                                  const std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    tensorflow::TensorProto* proto = nullptr;
    if (step != nullptr) {
      tensorflow::NamedTensorProto& named = *step->add_tensor();
      named.set_name(fetches[i]);
      proto = named.mutable_tensor();
    } else {
      proto = callable->add_fetch();
    }
    if (values[i].dtype() == DataType::kResource) {
      write_handles(values[i], proto);
      continue;
    }
    Status status = graph::tensor_to_proto(values[i], proto);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("[service] the fetch of \"{}\": ", fetches[i]));
  }
  return {};
}

void ClientSession::Call::finish(const Status& status) {
  const Status formed = for_client(status);
  if (const Done done = std::exchange(done_, nullptr)) done(formed);
}

}  // namespace tagflow::net
