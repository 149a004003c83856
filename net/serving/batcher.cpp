#include "net/serving/batcher.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "graph/fault.h"
#include "net/serving/batch_rows.h"
#include "net/serving/cut_task.h"

namespace tagflow::net::serving {

using Clock = std::chrono::steady_clock;

namespace {

struct Batch;

Status client_gone() {
  return error(Code::kCancelled, "[batch] the client has gone");
}

// A request whose client goes is answered at once, so that its answer and that
// of the run may meet: the first one counts.
class WaitingTask {
 public:
  explicit WaitingTask(Batcher::Task given) : task(std::move(given)) {}
  bool is_answered() const { return is_answered_; }
  void answer(Result<Tensors> outputs) {
    if (is_answered_.exchange(true)) return;
    if (task.end != nullptr) task.end->on_cancel({});
    static_cast<void>(guarded("batch", [&] { task.done(std::move(outputs)); }));
  }

  Batcher::Task task;
  // Guarded by the state's mutex.
  std::weak_ptr<Batch> batch;
  // Of a piece: the others of its request that are to wait in the queue after
  // it, each in a batch of its own.
  std::list<std::shared_ptr<Batch>> later;

 private:
  std::atomic<bool> is_answered_{false};
};

using TaskPtr = std::shared_ptr<WaitingTask>;

struct Batch {
  const void* owner = nullptr;
  std::string key;
  std::vector<TaskPtr> tasks;  // fixed once it runs
  int64_t rows = 0;
  // When it may run: it is full, or its first request has waited long enough.
  Clock::time_point due;
  bool is_running = false;
  // Of its run.
  const std::shared_ptr<CallEnd> end = std::make_shared<CallEnd>();
};
using BatchPtr = std::shared_ptr<Batch>;

BatchPtr new_batch(const Batcher::Task& first) {
  const auto batch = std::make_shared<Batch>();
  batch->owner = first.owner;
  batch->key = first.key;
  return batch;
}

int64_t padded(const BatchOptions& options, int64_t rows) {
  const auto& sizes = options.allowed_batch_sizes;
  const auto found = std::ranges::lower_bound(sizes, rows);
  return found == sizes.end() ? rows : *found;
}

}  // namespace

// Runs of batches keep it.
struct Batcher::State : std::enable_shared_from_this<State> {
  explicit State(const BatchOptions& given) : options(given) {}

  Status add(const TaskPtr& task);
  Status add_pieces(std::vector<Task> pieces);
  bool listen(const TaskPtr& task);
  void cancel(const TaskPtr& task);
  void serve();
  Status check_room(const void* owner, int64_t batches) const;
  // REQUIRES for these: mutex is held.
  Status has_room(const void* owner, int64_t batches) const;
  Status enqueue(const TaskPtr& task, Clock::time_point now);
  void close(std::list<BatchPtr>& one, Clock::time_point now);
  void release(const void* owner, size_t batches);
  void pass_turn(WaitingTask& task, Clock::time_point now);
  void drop_later(WaitingTask& task);
  BatchPtr take_next(Clock::time_point now);
  void serve_some(std::unique_lock<std::mutex>& lock);
  std::vector<TaskPtr> take_late(Clock::time_point now);
  Clock::time_point earliest_deadline() const;
  Clock::time_point next_event() const;
  bool may_run() const;
  // REQUIRES for these: it is not.
  void end_if_left(const TaskPtr& task);
  void start(const BatchPtr& batch);
  void run(const BatchPtr& batch);
  void finish(const BatchPtr& batch, int64_t rows, Result<Tensors> outputs);

  const BatchOptions options;
  TaskPool* pool = nullptr;  // lives as long as the thread
  mutable std::mutex mutex;  // guards the below
  std::condition_variable changed;
  std::thread thread;
  bool is_ending = false;
  std::map<std::pair<const void*, std::string>, BatchPtr> open;
  std::list<BatchPtr> closed, running;
  std::map<const void*, int64_t> waiting;  // batches, by owner
  // Whether all tasks are to be looked at: there may be many.
  Clock::time_point earliest = Clock::time_point::max();  // deadline, or before
  bool has_left = false;  // some client has gone
  Figures figures;
};

// False if its client has gone.
bool Batcher::State::listen(const TaskPtr& task) {
  return task->task.end == nullptr ||
         task->task.end->on_cancel([weak = weak_from_this(),
                                    gone = std::weak_ptr<WaitingTask>(task)] {
           const auto state = weak.lock();
           const auto found = gone.lock();
           if (state != nullptr && found != nullptr) state->cancel(found);
         });
}

Status Batcher::State::add(const TaskPtr& task) {
  if (!listen(task)) return client_gone();
  const std::lock_guard lock(mutex);
  TAGFLOW_RETURN_IF_ERROR(enqueue(task, Clock::now()));
  changed.notify_one();
  return {};
}

// Those with fewer rows than a run wait as any request does. Of the others, the
// first one waits, and has the rest behind it.
Status Batcher::State::add_pieces(std::vector<Task> pieces) {
  std::list<BatchPtr> chain;
  TaskPtr small;
  const void* const owner = pieces.front().owner;
  for (Task& piece : pieces) {
    const auto task = std::make_shared<WaitingTask>(std::move(piece));
    if (!listen(task)) return client_gone();
    if (task->task.rows < options.rows_of_a_run()) {
      small = task;
      continue;
    }
    chain.push_back(new_batch(task->task));
    chain.back()->rows = task->task.rows;
    chain.back()->tasks.push_back(task);
  }
  const auto now = Clock::now();
  const std::lock_guard lock(mutex);
  TAGFLOW_RETURN_IF_ERROR(has_room(owner, int64_t(pieces.size())));
  int64_t& count = waiting[owner];
  if (small != nullptr) TAGFLOW_RETURN_IF_ERROR(enqueue(small, now));
  // Nothing fails from here on.
  for (const BatchPtr& each : chain) each->tasks.front()->batch = each;
  count += int64_t(chain.size());
  figures.waiting_tasks += chain.size();
  WaitingTask& first = *chain.front()->tasks.front();
  earliest = std::min(earliest, first.task.deadline);
  first.later.splice(first.later.end(), chain, std::next(chain.begin()),
                     chain.end());
  chain.front()->due = now;
  close(chain, now);
  changed.notify_one();
  return {};
}

Status Batcher::State::check_room(const void* owner, int64_t batches) const {
  const std::lock_guard lock(mutex);
  return has_room(owner, batches);
}

// Beside those that are about to run.
Status Batcher::State::has_room(const void* owner, int64_t batches) const {
  const int64_t idle = std::max<int64_t>(
      options.num_batch_threads - int64_t(running.size() + closed.size()), 0);
  const auto found = waiting.find(owner);
  const int64_t count = found == waiting.end() ? 0 : found->second;
  if (count + batches <= options.max_enqueued_batches + idle) return {};
  return error(Code::kResourceExhausted,
               "[batch] there is no room for {} more {} beside the {} that "
               "wait (max_enqueued_batches is {}); try again later",
               batches, batches == 1 ? "batch" : "batches", count,
               options.max_enqueued_batches);
}

// An error if too much waits.
Status Batcher::State::enqueue(const TaskPtr& task, Clock::time_point now) {
  const Task& wanted = task->task;
  const int64_t most = options.rows_of_a_run();
  const std::pair at(wanted.owner, wanted.key);
  auto found = open.find(at);
  std::list<BatchPtr> done;  // a node for what is closed
  if (found != open.end() && found->second->rows + wanted.rows > most) {
    done.push_back(found->second);
    open.erase(found);
    close(done, now);
    found = open.end();
  }
  // A batch without a task never waits, even if memory ends here.
  if (found != open.end()) {
    done.push_back(found->second);
    found->second->tasks.push_back(task);
  } else {
    TAGFLOW_RETURN_IF_ERROR(has_room(wanted.owner, 1));
    done.push_back(new_batch(wanted));
    done.back()->due = now + options.batch_timeout;
    done.back()->tasks.push_back(task);
    int64_t& count = waiting[wanted.owner];
    found = open.emplace(at, done.back()).first;
    ++count;
  }
  const BatchPtr batch = found->second;
  earliest = std::min(earliest, wanted.deadline);
  task->batch = batch;
  batch->rows += wanted.rows;
  ++figures.waiting_tasks;
  if (batch->rows < most) return {};
  open.erase(found);
  close(done, now);
  return {};
}

// The batch waits for its turn only. Those whose time comes first go first.
void Batcher::State::close(std::list<BatchPtr>& one, Clock::time_point now) {
  Batch& batch = *one.front();
  batch.due = std::min(batch.due, now);
  auto at = closed.end();
  while (at != closed.begin() && (*std::prev(at))->due > batch.due) --at;
  closed.splice(at, one, one.begin());
}

// So many batches of the owner wait no longer.
void Batcher::State::release(const void* owner, size_t batches) {
  const auto found = waiting.find(owner);
  found->second -= int64_t(batches);
  if (found->second == 0) waiting.erase(found);
}

// The task begins: the next piece of its request goes to the end of the queue,
// so that those of others that wait there go before it.
void Batcher::State::pass_turn(WaitingTask& task, Clock::time_point now) {
  if (task.later.empty()) return;
  WaitingTask& next = *task.later.front()->tasks.front();
  if (next.is_answered()) return drop_later(task);
  next.later.splice(next.later.end(), task.later, std::next(task.later.begin()),
                    task.later.end());
  task.later.front()->due = now;
  close(task.later, now);
}

// Its request is over.
void Batcher::State::drop_later(WaitingTask& task) {
  if (task.later.empty()) return;
  release(task.task.owner, task.later.size());
  figures.waiting_tasks -= task.later.size();
  task.later.clear();
}

void Batcher::State::cancel(const TaskPtr& task) {
  task->answer(client_gone());
  end_if_left(task);
}

// A run ends early when nobody waits for it. In its queue a batch may still get
// other requests.
void Batcher::State::end_if_left(const TaskPtr& task) {
  std::shared_ptr<CallEnd> end;
  {
    const std::lock_guard lock(mutex);
    has_left = true;
    const BatchPtr batch = task->batch.lock();
    if (batch != nullptr && batch->is_running &&
        std::ranges::all_of(batch->tasks, &WaitingTask::is_answered))
      end = batch->end;
    changed.notify_one();  // it leaves its queue
  }
  if (end != nullptr) end->cancel();
}

bool Batcher::State::may_run() const {
  return int64_t(running.size()) < options.num_batch_threads;
}

// An open batch grows as long as nothing would run it.
BatchPtr Batcher::State::take_next(Clock::time_point now) {
  auto late = open.end();
  for (auto it = open.begin(); it != open.end(); ++it)
    if (it->second->due <= now &&
        (late == open.end() || it->second->due < late->second->due))
      late = it;
  if (late != open.end() &&
      (closed.empty() || late->second->due < closed.front()->due)) {
    closed.push_front(late->second);
    open.erase(late);
  }
  if (closed.empty()) return nullptr;
  running.splice(running.end(), closed, closed.begin());
  const BatchPtr& next = running.back();
  next->is_running = true;
  release(next->owner, 1);
  figures.waiting_tasks -= next->tasks.size();
  for (const TaskPtr& task : next->tasks) pass_turn(*task, now);
  return next;
}

// The requests whose time is over. Those that wait leave their queues, and so
// do those that have been answered.
std::vector<TaskPtr> Batcher::State::take_late(Clock::time_point now) {
  std::vector<TaskPtr> late;
  const auto is_over = [now](const TaskPtr& task) {
    return task->is_answered() || task->task.deadline <= now;
  };
  const auto collect = [&](const Batch& batch) {
    for (const TaskPtr& task : batch.tasks)
      if (!task->is_answered() && task->task.deadline <= now)
        late.push_back(task);
  };
  for (const auto& [at, batch] : open) collect(*batch);
  for (const BatchPtr& batch : closed) collect(*batch);
  for (const BatchPtr& batch : running) collect(*batch);
  // Nothing is changed before, since what is above may lack memory.
  const auto sift = [&](Batch& batch) {
    std::erase_if(batch.tasks, [&](const TaskPtr& task) {
      if (!is_over(task)) return false;
      batch.rows -= task->task.rows;
      --figures.waiting_tasks;
      drop_later(*task);
      return true;
    });
    if (!batch.tasks.empty()) return false;
    release(batch.owner, 1);
    return true;
  };
  std::erase_if(open, [&](auto& entry) { return sift(*entry.second); });
  std::erase_if(closed, [&](const BatchPtr& batch) { return sift(*batch); });
  return late;
}

// Of those that are not answered.
Clock::time_point Batcher::State::earliest_deadline() const {
  auto first = Clock::time_point::max();
  const auto look = [&](const Batch& batch) {
    for (const TaskPtr& task : batch.tasks)
      if (!task->is_answered()) first = std::min(first, task->task.deadline);
  };
  for (const auto& [at, batch] : open) look(*batch);
  for (const BatchPtr& batch : closed) look(*batch);
  for (const BatchPtr& batch : running) look(*batch);
  return first;
}

Clock::time_point Batcher::State::next_event() const {
  auto next = earliest;
  if (may_run())
    for (const auto& [at, batch] : open) next = std::min(next, batch->due);
  return next;
}

void Batcher::State::serve() {
  constexpr std::chrono::milliseconds kPause{10};
  std::unique_lock lock(mutex);
  while (!is_ending) {
    if (guarded("batch", [&] { serve_some(lock); }).ok()) continue;
    // Without memory, for a while.
    if (!lock.owns_lock()) lock.lock();
    changed.wait_for(lock, kPause);
  }
}

void Batcher::State::serve_some(std::unique_lock<std::mutex>& lock) {
  const auto now = Clock::now();
  std::vector<TaskPtr> late;
  if (has_left || earliest <= now) {
    late = take_late(now);
    has_left = false;
    earliest = earliest_deadline();  // maybe of one that is answered below
  }
  const BatchPtr next = may_run() ? take_next(now) : nullptr;
  if (late.empty() && next == nullptr) {
    const auto until = next_event();
    if (until == Clock::time_point::max())
      changed.wait(lock);
    else
      changed.wait_until(lock, until);
    return;
  }
  lock.unlock();
  for (const TaskPtr& task : late) {
    task->answer(error(Code::kDeadlineExceeded,
                       "[batch] the deadline passed before the batch of the "
                       "request had run"));
    end_if_left(task);
  }
  if (next != nullptr) {
    // A run may begin with work, which must not keep others waiting.
    const Status posted = guarded("batch", [&] {
      pool->post([self = shared_from_this(), next] { self->start(next); });
    });
    if (!posted.ok()) finish(next, next->rows, posted);
  }
  lock.lock();
}

void Batcher::State::start(const BatchPtr& batch) {
  const Status started = guarded("batch", [&] { run(batch); });
  if (!started.ok()) finish(batch, batch->rows, started);
}

void Batcher::State::run(const BatchPtr& batch) {
  Run run{{}, batch->rows, Clock::time_point::min(), batch->end};
  std::vector<const Tensors*> parts;
  for (const TaskPtr& task : batch->tasks) {
    parts.push_back(&task->task.inputs);
    run.deadline = std::max(run.deadline, task->task.deadline);
  }
  const int64_t rows = padded(options, batch->rows);
  auto joined = join_rows(parts, rows);
  if (!joined.ok()) return finish(batch, rows, std::move(joined).status());
  run.inputs = *std::move(joined);
  {
    const std::lock_guard lock(mutex);
    ++figures.batches;
    figures.rows += uint64_t(batch->rows);
    figures.padding += uint64_t(rows - batch->rows);
  }
  batch->tasks[0]->task.runner(
      std::move(run),
      [self = shared_from_this(), batch, rows](Result<Tensors> outputs) {
        self->finish(batch, rows, std::move(outputs));
      });
}

void Batcher::State::finish(const BatchPtr& batch, int64_t rows,
                            Result<Tensors> outputs) {
  {
    const std::lock_guard lock(mutex);
    running.remove(batch);
    changed.notify_one();
  }
  int64_t begin = 0;
  for (const TaskPtr& task : batch->tasks) {
    const int64_t count = task->task.rows;
    if (!outputs.ok()) {
      task->answer(outputs.status());
    } else if (!task->is_answered()) {
      task->answer(guarded(
          "batch", [&] { return cut_rows(*outputs, rows, begin, count); }));
    }
    begin += count;
  }
}

Batcher::Batcher(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Batcher>> Batcher::create(const BatchOptions& options) {
  return guarded("batch", [&]() -> Result<std::unique_ptr<Batcher>> {
    BatchOptions used = options;
    if (used.num_batch_threads == 0)
      used.num_batch_threads =
          std::max<int64_t>(std::thread::hardware_concurrency(), 1);
    const auto state = std::make_shared<State>(used);
    std::unique_ptr<Batcher> batcher(new Batcher(state));
    TAGFLOW_ASSIGN(batcher->pool_,
                   TaskPool::create(size_t(std::min<int64_t>(
                       used.num_batch_threads,
                       std::max(std::thread::hardware_concurrency(), 1U)))));
    state->pool = batcher->pool_.get();
    state->thread = std::thread([state = state.get()] { state->serve(); });
    return batcher;
  });
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
    state_->changed.notify_one();
  }
  if (state_->thread.joinable()) state_->thread.join();
  pool_.reset();  // what is about to run begins
  std::vector<TaskPtr> left;
  {
    const std::lock_guard lock(state_->mutex);
    const auto take = [&](const Batch& batch) {
      left.insert(left.end(), batch.tasks.begin(), batch.tasks.end());
    };
    for (const auto& [at, batch] : state_->open) take(*batch);
    for (const BatchPtr& batch : state_->closed) take(*batch);
    state_->open.clear();
    state_->closed.clear();
  }
  for (const TaskPtr& task : left)
    task->answer(error(Code::kCancelled, "[batch] the server ends"));
}

void Batcher::add(Task task) {
  const BatchOptions& options = state_->options;
  if (task.rows > options.rows_of_a_request())
    return task.done(invalid_argument(
        "[batch] the request has {} rows, and a batch has {} at most",
        task.rows, options.rows_of_a_request()));
  if (task.rows > options.rows_of_a_run())
    return add_in_pieces(std::move(task));
  const auto waiting = std::make_shared<WaitingTask>(std::move(task));
  const Status added = guarded("batch", [&] { return state_->add(waiting); });
  if (!added.ok()) waiting->answer(added);
}

void Batcher::add_in_pieces(Task task) {
  const int64_t most = state_->options.rows_of_a_run();
  const void* const owner = task.owner;
  const int64_t pieces = (task.rows + most - 1) / most;
  const auto whole = std::make_shared<CutTask>(std::move(task), most);
  const Status begun = guarded("batch", [&]() -> Status {
    // Before memory is taken; and again when they are added.
    TAGFLOW_RETURN_IF_ERROR(state_->check_room(owner, pieces));
    TAGFLOW_ASSIGN(std::vector<Task> cut, whole->cut());
    return state_->add_pieces(std::move(cut));
  });
  if (!begun.ok()) whole->fail(begun);
}

Batcher::Figures Batcher::figures() const {
  const std::lock_guard lock(state_->mutex);
  Figures figures = state_->figures;
  for (const auto& [owner, batches] : state_->waiting)
    figures.waiting_batches += uint64_t(batches);
  figures.running_batches = state_->running.size();
  return figures;
}

}  // namespace tagflow::net::serving
