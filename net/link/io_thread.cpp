#include "net/link/io_thread.h"

#include <pthread.h>
#include <sched.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "graph/fault.h"

namespace tagflow::net {

namespace asio = boost::asio;

struct IoThread::State {
  asio::io_context context{1};  // one thread runs it
  asio::executor_work_guard<asio::io_context::executor_type> work{
      context.get_executor()};
  std::thread thread;
};

namespace {

using Clock = std::chrono::steady_clock;

// Note [Looking for messages]
// A processor that sleeps takes about 25 us to wake up, which is twice the time
// of a message between two processes. A loop that is cut makes each of them
// wait for the other in every iteration. So after a wait that was short, a
// thread that may look polls for a while before it sleeps: waits come in runs,
// and a look that finds nothing ends the run.
//
// The thread yields between looks, so it takes no processor from the thread
// that makes the message. If others want the processor for long, as a program
// that only computes does, a yield lasts until they have had their turn. A
// thread that sleeps gets the processor at once, so there the thread sleeps:
// it tries looking again after 1,000 times as long as a look may take.
struct Looks {
  std::chrono::nanoseconds most;
  bool was_short = false;
  Clock::time_point crowded_until{};
};

// Runs what is ready, and waits until something is.
void wait(asio::io_context& context, Looks& looks) {
  const auto begin = Clock::now();
  auto now = begin;
  while (looks.was_short && now >= looks.crowded_until &&
         now - begin < looks.most) {
    if (context.poll() > 0) return;
    const auto before = Clock::now();
    ::sched_yield();
    now = Clock::now();
    if (now - before > looks.most)
      looks.crowded_until = now + 1000 * looks.most;
  }
  context.run_one();
  looks.was_short = Clock::now() - begin < looks.most;
}

// Links guard their own work. What Asio itself throws, as for want of memory,
// costs the operation that was to begin: its link is lost by the silence.
void run(asio::io_context& context, std::chrono::nanoseconds look) {
  Looks looks{.most = look};
  while (!context.stopped())
    static_cast<void>(guarded([&] { wait(context, looks); }));
}

}  // namespace

IoThread::IoThread(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<IoThread>> IoThread::start(
    const std::string& name, std::chrono::nanoseconds look) {
  return guarded("net|link", [&]() -> Result<std::unique_ptr<IoThread>> {
    std::unique_ptr<IoThread> made(new IoThread(std::make_unique<State>()));
    State* state = made->state_.get();
    state->thread = std::thread([state, look] { run(state->context, look); });
    constexpr size_t kLongestName = 15;  // of pthreads
    ::pthread_setname_np(state->thread.native_handle(),
                         name.substr(0, kLongestName).c_str());
    return made;
  });
}

IoThread::~IoThread() {
  state_->context.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

bool IoThread::is_current() const {
  return state_->thread.get_id() == std::this_thread::get_id();
}

void IoThread::post(std::function<void()> f) {
  asio::post(state_->context, std::move(f));
}

void IoThread::post_after(std::chrono::nanoseconds delay,
                          std::function<void()> f) {
  const auto timer = std::make_shared<asio::steady_timer>(
      state_->context,
      std::chrono::duration_cast<asio::steady_timer::duration>(delay));
  timer->async_wait(
      [timer, f = std::move(f)](const boost::system::error_code& error) {
        if (!error) f();
      });
}

void IoThread::call(const std::function<void()>& f) {
  if (is_current()) return f();
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  post([&] {
    f();
    // Under the lock: the waiter's variables end with its wait.
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
}

asio::io_context& IoThread::context() { return state_->context; }

}  // namespace tagflow::net
