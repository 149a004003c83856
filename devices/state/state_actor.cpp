#include "devices/state/state_actor.h"

#include <utility>

#include "devices/state/actor_kernel.h"
#include "devices/state/guard.h"

namespace tagflow::devices {

// --- Operations -------------------------------------------------------------

Operation::Operation(const ActorKernel& kernel, Ref<StateActor> actor,
                     KernelContext& context, const Errand& errand,
                     Completion done)
    : kernel_(kernel),
      actor_(std::move(actor)),
      context_(context),
      errand_(errand),
      done_(std::move(done)) {}

void Operation::answer(Status status) {
  use_.store(kOver, std::memory_order_release);
  const Completion done = std::exchange(done_, nullptr);
  done(std::move(status));
}

Status Operation::cancelled() const {
  return error(Code::kCancelled, "[{}] the step was cancelled",
               context_.node().op());
}

bool Operation::hold() {
  int use = kFree;
  return use_.compare_exchange_strong(use, kHeld);
}

bool Operation::let_go() {
  int use = kHeld;
  if (use_.compare_exchange_strong(use, kFree)) return true;
  answer(cancelled());
  return false;
}

void Operation::on_cancel() {
  const std::shared_ptr<Operation> self = shared_from_this();
  int use = kFree;
  while (!use_.compare_exchange_weak(use, kOver)) {
    // The holder answers it.
    if (use == kHeld && use_.compare_exchange_weak(use, kHeldAndCancelled))
      return;
    use = kFree;
  }
  answer(cancelled());
  // It may wait in a line, with others behind it.
  actor_->post(cancelled_, self);
}

// --- Actors -----------------------------------------------------------------

std::optional<Status> StateActor::try_now(const ActorKernel& kernel,
                                          KernelContext& context,
                                          Errand& errand) {
  if (!mailbox_.try_enter()) return std::nullopt;
  std::optional<Status> status;
  const std::optional<Line> line = kernel.line();
  const bool must_wait = line && errand.amount > 0 && is_in_order() &&
                         !lines_[size_t(*line)].empty();
  if (has_ended()) [[unlikely]] {
    status = ended();
  } else if (!must_wait &&
             kernel.readiness(context, *this, errand) == Readiness::kWhole) {
    status = guarded(context.node().op(), [&] {
      const Commit commit = context.commit();
      return commit && !context.cancelled()
                 ? kernel.perform(context, *this, errand)
                 : error(Code::kCancelled, "[{}] the step was cancelled",
                         context.node().op());
    });
    serve_lines();
  }
  leave();
  return status;
}

void StateActor::post(std::shared_ptr<Operation> operation) {
  ActorMessage& message = operation->arrived_;
  post(message, std::move(operation));
}

void StateActor::post(ActorMessage& message,
                      std::shared_ptr<Operation> operation) {
  message.operation = std::move(operation);
  const Ref<StateActor> alive(this);
  if (!mailbox_.post(message)) return;
  handle(message);
  leave();
}

void StateActor::wake() { post(woken_, nullptr); }

void StateActor::make_room(bool on) {
  makes_room_ = on;
  if (on && !is_room_posted_.exchange(true)) post(room_, nullptr);
}

void StateActor::on_end(const Status&) { post(end_, nullptr); }

void StateActor::leave() noexcept {
  mailbox_.leave([this](ActorMessage& message) { handle(message); });
}

void StateActor::handle(ActorMessage& message) noexcept {
  switch (message.kind) {
    case ActorMessage::Kind::kArrived:
      arrive(std::move(message.operation));
      break;
    case ActorMessage::Kind::kCancelled: {
      const std::shared_ptr<Operation> operation = std::move(message.operation);
      if (operation->is_linked()) take_out(*operation);
      break;
    }
    case ActorMessage::Kind::kWoken:
      on_woken();
      break;
    case ActorMessage::Kind::kRoom:
      is_room_posted_ = false;
      break;
    case ActorMessage::Kind::kEnd:
      for (const Line line : {Line::kIn, Line::kOut}) end_line(line, ended());
      clear();
      break;
  }
  serve_lines();
}

void StateActor::arrive(std::shared_ptr<Operation> operation) {
  Operation& arrived = *operation;
  const std::optional<Line> line = arrived.kernel_.line();
  if (has_ended()) {
    if (arrived.claim()) arrived.answer(ended());
    return;
  }
  // It was cancelled before it arrived.
  if (arrived.use_.load(std::memory_order_acquire) == Operation::kOver) return;
  if (line && arrived.errand_.amount > 0) {
    at(*line).push_back(arrived);
    arrived.self_ = std::move(operation);
    waiting_[size_t(*line)].fetch_add(1, std::memory_order_relaxed);
    on_lines_changed();
    return;
  }
  Status status;
  if (attempt(arrived, status) == Outcome::kDone)
    arrived.answer(std::move(status));
}

std::shared_ptr<Operation> StateActor::take_out(Operation& operation) {
  const Line line = *operation.kernel_.line();
  at(line).erase(Waiting::s_iterator_to(operation));
  waiting_[size_t(line)].fetch_sub(1, std::memory_order_relaxed);
  on_lines_changed();
  return std::move(operation.self_);
}

const Operation* StateActor::first(Line line) const {
  const Waiting& waiting = lines_[size_t(line)];
  return waiting.empty() ? nullptr : &waiting.front();
}

void StateActor::end_line(Line line, const Status& reason) {
  Waiting& waiting = at(line);
  while (!waiting.empty()) {
    const std::shared_ptr<Operation> operation = take_out(waiting.front());
    if (operation->claim()) operation->answer(reason);
  }
}

// An operation of one line may be what the other line waits for.
void StateActor::serve_lines() {
  bool changed;
  do {
    changed = serve(Line::kIn);
    changed = serve(Line::kOut) || changed;
  } while (changed && !(lines_[0].empty() && lines_[1].empty()));
}

bool StateActor::serve(Line line) {
  bool changed = false;
  Waiting& waiting = at(line);
  for (auto it = waiting.begin(); it != waiting.end();) {
    Operation& operation = *it++;
    Status status;
    const Outcome outcome = attempt(operation, status);
    if (outcome == Outcome::kDone || outcome == Outcome::kDropped) {
      const std::shared_ptr<Operation> alive = take_out(operation);
      if (outcome == Outcome::kDone) operation.answer(std::move(status));
      changed = true;
      continue;
    }
    changed = changed || outcome == Outcome::kSome;
    if (is_in_order()) break;
  }
  return changed;
}

StateActor::Outcome StateActor::attempt(Operation& operation, Status& status) {
  if (!operation.hold()) return Outcome::kDropped;
  const ActorKernel& kernel = operation.kernel_;
  KernelContext& context = operation.context_;
  const Readiness readiness =
      operation.errand_.amount == 0
          ? Readiness::kWhole
          : kernel.readiness(context, *this, operation.errand_);
  if (readiness == Readiness::kNotYet)
    return operation.let_go() ? Outcome::kNothing : Outcome::kDropped;
  const bool is_last = readiness == Readiness::kWhole;
  // Claimed first: work for a cancelled operation would be lost.
  if (is_last && !operation.claim()) {
    operation.let_go();
    return Outcome::kDropped;
  }
  status = guarded(context.node().op(), [&]() -> Status {
    const Commit commit = context.commit();
    return commit && !context.cancelled()
               ? kernel.perform(context, *this, operation.errand_)
               : operation.cancelled();
  });
  if (is_last) return Outcome::kDone;
  if (!status.ok()) {
    if (operation.claim()) return Outcome::kDone;
    operation.let_go();
    return Outcome::kDropped;
  }
  return operation.let_go() ? Outcome::kSome : Outcome::kDropped;
}

// --- Kernels ----------------------------------------------------------------

Status ActorKernel::check(const KernelContext&, const StateActor&,
                          Errand&) const {
  return {};
}

Readiness ActorKernel::readiness(const KernelContext&, const StateActor&,
                                 const Errand&) const {
  return Readiness::kWhole;
}

std::optional<Status> ActorKernel::try_compute(KernelContext& context) const {
  Result<Ref<StateActor>> actor = find(context);
  if (!actor.ok()) return std::move(actor).status();
  Errand errand;
  if (Status checked = check(context, **actor, errand); !checked.ok())
    return checked;
  return (*actor)->try_now(*this, context, errand);
}

void ActorKernel::compute_async(KernelContext& context, Completion done) const {
  Result<Ref<StateActor>> actor = find(context);
  if (!actor.ok()) return done(std::move(actor).status());
  Errand errand;
  if (Status checked = check(context, **actor, errand); !checked.ok())
    return done(std::move(checked));
  const auto operation = std::make_shared<Operation>(*this, *actor, context,
                                                     errand, std::move(done));
  if (!context.on_cancel(operation)) {
    operation->answer(operation->cancelled());
    return;
  }
  // From here on the context may be destroyed.
  (*actor)->post(operation);
}

std::string ActorKernel::describe_wait(const KernelContext& context) const {
  const Result<Ref<StateActor>> actor = find(context);
  return actor.ok() ? (*actor)->describe_state() : std::string();
}

}  // namespace tagflow::devices
