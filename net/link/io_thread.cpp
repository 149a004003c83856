#include "net/link/io_thread.h"

#include <pthread.h>

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

// Links guard their own work. What Asio itself throws, as for want of memory,
// costs the operation that was to begin: its link is lost by the silence.
void run(asio::io_context& context) {
  while (!guarded([&] { context.run(); }).ok()) {
  }
}

}  // namespace

IoThread::IoThread(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<IoThread>> IoThread::start(const std::string& name) {
  return guarded("net|link", [&]() -> Result<std::unique_ptr<IoThread>> {
    std::unique_ptr<IoThread> made(new IoThread(std::make_unique<State>()));
    State* state = made->state_.get();
    state->thread = std::thread([state] { run(state->context); });
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
