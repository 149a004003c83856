#include "net/serving/model_server.h"

#include <fmt/ranges.h>

#include <utility>

#include "graph/fault.h"
#include "net/serving/batch_rows.h"

namespace tagflow::net::serving {

using ServerClock = std::chrono::steady_clock;

// A request on its way. Keeps the version that answers it.
struct ModelServer::Call {
  PredictRequest request;
  PredictDone done;
  ServerClock::time_point begin = ServerClock::now();
  std::shared_ptr<const Servable> servable;
  const ServedSignature* signature = nullptr;
  // Null until the model is known. A run may end after the server.
  std::shared_ptr<ModelFigures> figures;

  void answer(Result<Tensors> outputs) {
    if (figures != nullptr) {
      figures->requests.on_end(outputs.status().code());
      figures->latency.add(
          std::chrono::duration<double>(ServerClock::now() - begin).count());
    }
    if (request.end != nullptr) request.end->on_cancel({});
    if (!outputs.ok()) return done(std::move(outputs).status());
    PredictResponse response{request.model, *std::move(outputs)};
    response.model.version = servable->version();
    response.model.label.clear();
    response.model.signature = signature->name;
    done(std::move(response));
  }
};

namespace {

// Runs until the deadline, or until the client goes.
void run_signature(const std::shared_ptr<const Servable>& servable,
                   const ServedSignature& signature, const Tensors& inputs,
                   const std::vector<std::string>& filter,
                   ServerClock::time_point deadline,
                   const std::shared_ptr<CallEnd>& end, Servable::Done done) {
  actors::RunOptions options;
  if (deadline != ServerClock::time_point::max()) {
    options.timeout = deadline - ServerClock::now();
    if (options.timeout.count() <= 0)
      return done(
          error(Code::kDeadlineExceeded, "[serving] the deadline has passed"));
  }
  if (end != nullptr) {
    options.cancel.emplace();
    const bool is_there =
        end->on_cancel([token = *options.cancel]() mutable { token.cancel(); });
    if (!is_there)
      return done(error(Code::kCancelled, "[serving] the client has gone"));
  }
  servable->run(signature, inputs, filter, options,
                [servable, done = std::move(done)](Result<Tensors> outputs) {
                  done(std::move(outputs));
                });
}

}  // namespace

Result<std::unique_ptr<ModelServer>> ModelServer::create(Options options) {
  return guarded("serving", [&]() -> Result<std::unique_ptr<ModelServer>> {
    std::unique_ptr<ModelServer> server(new ModelServer());
    server->allows_reloads_ = options.allows_reloads;
    if (options.batching) {
      TAGFLOW_RETURN_IF_ERROR(options.batching->validate());
      TAGFLOW_ASSIGN(server->batcher_, Batcher::create(*options.batching));
    }
    ModelStore::Options store;
    store.poll_interval = options.poll_interval;
    store.on_change = std::move(options.on_change);
    store.loader = [servable = std::move(options.servable)](
                       const std::string& model, int64_t version,
                       const std::string& folder,
                       const actors::CancelToken& stop) {
      return Servable::load(model, version, folder, servable, stop);
    };
    TAGFLOW_ASSIGN(server->store_, ModelStore::create(std::move(store)));
    return server;
  });
}

ModelServer::~ModelServer() {
  batcher_.reset();
  store_.reset();
}

void ModelServer::predict(PredictRequest request, PredictDone done) {
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->done = std::move(done);
  const Status begun = guarded("serving", [&]() -> Status {
    const PredictRequest& wanted = call->request;
    call->servable = std::move(call->request.servable);
    if (call->servable == nullptr) {
      TAGFLOW_ASSIGN(call->servable, store_->find(wanted.model));
    }
    call->figures = figures_.of(wanted.model.name);
    call->figures->requests.on_begin();
    TAGFLOW_ASSIGN(call->signature,
                   call->servable->signature(wanted.model.signature));
    return call->servable->check(*call->signature, wanted.inputs,
                                 wanted.output_filter);
  });
  if (!begun.ok()) return call->answer(begun);
  const Status started = guarded("serving", [&] { run(call); });
  if (!started.ok()) call->answer(started);
}

void ModelServer::run(const std::shared_ptr<Call>& call) {
  const PredictRequest& request = call->request;
  if (batcher_ != nullptr && call->signature->has_rows &&
      request.inputs.size() == call->signature->inputs.size())
    if (const auto rows = count_rows(request.inputs); rows.ok())
      return run_in_batch(call, *rows);
  run_signature(
      call->servable, *call->signature, request.inputs, request.output_filter,
      request.deadline.value_or(ServerClock::time_point::max()), request.end,
      [call](Result<Tensors> outputs) { call->answer(std::move(outputs)); });
}

void ModelServer::run_in_batch(const std::shared_ptr<Call>& call,
                               int64_t rows) {
  PredictRequest& request = call->request;
  Batcher::Task task;
  task.owner = call->servable.get();
  task.key = fmt::format("{}\n{}\n{}", call->signature->name,
                         fmt::join(request.output_filter, "\n"),
                         row_types(request.inputs));
  task.inputs = std::move(request.inputs);
  task.rows = rows;
  if (request.deadline) task.deadline = *request.deadline;
  task.end = request.end;
  task.runner = [servable = call->servable, signature = call->signature,
                 filter = request.output_filter, figures = call->figures](
                    Batcher::Run run, Batcher::Done done) {
    figures->batches.add(double(run.rows));
    run_signature(servable, *signature, run.inputs, filter, run.deadline,
                  run.end, std::move(done));
  };
  task.done = [call](Result<Tensors> outputs) {
    call->answer(std::move(outputs));
  };
  batcher_->add(std::move(task));
}

void ModelServer::write_figures(MetricText& text) const {
  using Type = MetricText::Type;
  figures_.write(text);
  text.begin("tagflow_serving_model_state", Type::kGauge,
             "The state of each version, in TensorFlow Serving's numbers: 30 "
             "is available.");
  for (const std::string& name : store_->names()) {
    const auto statuses = store_->statuses({.name = name});
    if (!statuses.ok()) continue;
    for (const VersionStatus& version : *statuses)
      text.add(
          {{"model", name}, {"version", fmt::format("{}", version.version)}},
          uint64_t(version.state));
  }
  if (batcher_ == nullptr) return;
  const Batcher::Figures batches = batcher_->figures();
  text.one("tagflow_serving_batches_total", Type::kCounter,
           "Batches that have run.", batches.batches);
  text.one("tagflow_serving_padding_rows_total", Type::kCounter,
           "Rows that filled batches to an allowed size.", batches.padding);
  text.one("tagflow_serving_queued_requests", Type::kGauge,
           "Requests that wait for their batch.", batches.waiting_tasks);
  text.one("tagflow_serving_queued_batches", Type::kGauge, "Batches that wait.",
           batches.waiting_batches);
}

}  // namespace tagflow::net::serving
