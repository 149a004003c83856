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
  std::weak_ptr<Batch> batch;  // guarded by the state's mutex

 private:
  std::atomic<bool> is_answered_{false};
};

using TaskPtr = std::shared_ptr<WaitingTask>;

struct Batch {
  const void* owner = nullptr;
  std::string key;
  std::vector<TaskPtr> tasks;  // fixed once it runs
  int64_t rows = 0;
  Clock::time_point opened;
  bool is_running = false;
  // Of its run.
  const std::shared_ptr<CallEnd> end = std::make_shared<CallEnd>();
};
using BatchPtr = std::shared_ptr<Batch>;

int64_t padded(const BatchOptions& options, int64_t rows) {
  const auto& sizes = options.allowed_batch_sizes;
  const auto found = std::ranges::lower_bound(sizes, rows);
  return found == sizes.end() ? rows : *found;
}

}  // namespace

// Runs of batches keep it.
struct Batcher::State : std::enable_shared_from_this<State> {
  explicit State(const BatchOptions& given) : options(given) {}

  void add(const TaskPtr& task);
  void cancel(const TaskPtr& task);
  void serve();
  // REQUIRES for these: mutex is held.
  bool enqueue(const TaskPtr& task);
  void serve_some(std::unique_lock<std::mutex>& lock);
  void close_late(Clock::time_point now);
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

void Batcher::State::add(const TaskPtr& task) {
  const Task& wanted = task->task;
  if (wanted.end != nullptr &&
      !wanted.end->on_cancel(
          [weak = weak_from_this(), gone = std::weak_ptr<WaitingTask>(task)] {
            const auto state = weak.lock();
            const auto found = gone.lock();
            if (state != nullptr && found != nullptr) state->cancel(found);
          }))
    return task->answer(error(Code::kCancelled, "[batch] the client has gone"));
  bool has_room = false;
  {
    const std::lock_guard lock(mutex);
    has_room = enqueue(task);
    changed.notify_one();
  }
  if (!has_room)
    task->answer(
        error(Code::kResourceExhausted,
              "[batch] {} batches wait already (max_enqueued_batches); try "
              "again later",
              options.max_enqueued_batches));
}

// False if too much waits.
bool Batcher::State::enqueue(const TaskPtr& task) {
  const Task& wanted = task->task;
  const int64_t most = options.rows_of_a_run();
  const std::pair at(wanted.owner, wanted.key);
  auto found = open.find(at);
  if (found != open.end() && found->second->rows + wanted.rows > most) {
    closed.push_back(found->second);
    open.erase(found);
    found = open.end();
  }
  if (found == open.end()) {
    int64_t& count = waiting[wanted.owner];
    // Beside those that are about to run.
    const int64_t idle = std::max<int64_t>(
        options.num_batch_threads - int64_t(running.size() + closed.size()), 0);
    if (count >= options.max_enqueued_batches + idle) return false;
    const auto batch = std::make_shared<Batch>();
    batch->owner = wanted.owner;
    batch->key = wanted.key;
    batch->opened = Clock::now();
    found = open.emplace(at, batch).first;
    ++count;
  }
  const BatchPtr batch = found->second;
  batch->tasks.push_back(task);
  earliest = std::min(earliest, wanted.deadline);
  task->batch = batch;
  batch->rows += wanted.rows;
  ++figures.waiting_tasks;
  if (batch->rows < most) return true;
  closed.push_back(batch);
  open.erase(found);
  return true;
}

void Batcher::State::cancel(const TaskPtr& task) {
  task->answer(error(Code::kCancelled, "[batch] the client has gone"));
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

void Batcher::State::close_late(Clock::time_point now) {
  for (auto it = open.begin(); it != open.end();) {
    if (it->second->opened + options.batch_timeout > now) {
      ++it;
      continue;
    }
    closed.push_back(it->second);
    it = open.erase(it);
  }
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
      return true;
    });
    if (!batch.tasks.empty()) return false;
    if (--waiting[batch.owner] == 0) waiting.erase(batch.owner);
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
    for (const auto& [at, batch] : open)
      next = std::min(next, batch->opened + options.batch_timeout);
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
  // An open batch grows as long as nothing would run it.
  if (may_run() && closed.empty()) close_late(now);
  BatchPtr next;
  if (may_run() && !closed.empty()) {
    next = closed.front();
    running.splice(running.end(), closed, closed.begin());
    next->is_running = true;
    if (--waiting[next->owner] == 0) waiting.erase(next->owner);
    figures.waiting_tasks -= next->tasks.size();
  }
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
  const bool is_large = task.rows > options.rows_of_a_run();
  if (task.rows > options.rows_of_a_request())
    return task.done(invalid_argument(
        "[batch] the request has {} rows, and a batch has {} at most",
        task.rows, options.rows_of_a_request()));
  if (is_large) return add_in_pieces(std::move(task));
  const auto waiting = std::make_shared<WaitingTask>(std::move(task));
  const Status added = guarded("batch", [&] { state_->add(waiting); });
  if (!added.ok()) waiting->answer(added);
}

void Batcher::add_in_pieces(Task task) {
  const int64_t most = state_->options.rows_of_a_run();
  const auto whole = std::make_shared<CutTask>(std::move(task), most);
  const Status begun = guarded("batch", [&]() -> Status {
    TAGFLOW_ASSIGN(std::vector<Task> pieces, whole->cut());
    for (Task& piece : pieces) add(std::move(piece));
    return {};
  });
  if (!begun.ok()) whole->fail(begun);
}

Batcher::Figures Batcher::figures() const {
  const std::lock_guard lock(state_->mutex);
  Figures figures = state_->figures;
  figures.waiting_batches = state_->open.size() + state_->closed.size();
  figures.running_batches = state_->running.size();
  return figures;
}

}  // namespace tagflow::net::serving
