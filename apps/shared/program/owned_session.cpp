#include "apps/shared/program/owned_session.h"

#include <atomic>
#include <future>
#include <system_error>
#include <thread>

namespace tagflow::apps {
namespace {

// The number of sessions that have not ended in time, and not since.
std::atomic<int> sessions_left{0};

// The objects that the ending thread owns.
struct Ending {
  std::vector<std::shared_ptr<void>> kept;  // destroyed after the session
  std::unique_ptr<actors::Session> session;
  std::promise<void> ended;
};

}  // namespace

OwnedSession& OwnedSession::operator=(OwnedSession&& other) noexcept {
  if (this == &other) return *this;
  end(kPatience);
  session_ = std::move(other.session_);
  kept_ = std::move(other.kept_);
  return *this;
}

bool OwnedSession::end(std::chrono::milliseconds patience) {
  if (session_ == nullptr) {
    kept_.clear();
    return true;
  }
  auto ending = std::make_shared<Ending>();
  ending->kept = std::move(kept_);
  ending->session = std::move(session_);
  std::future<void> ended = ending->ended.get_future();
  std::thread thread;
  sessions_left.fetch_add(1);
  const auto finish = [ending] {
    ending->session.reset();
    sessions_left.fetch_sub(1);
    ending->ended.set_value();
  };
  try {
    thread = std::thread(finish);
  } catch (const std::system_error&) {
    finish();  // without a thread: waits without a limit
    return true;
  }
  if (ended.wait_for(patience) == std::future_status::ready) {
    thread.join();
    return true;
  }
  thread.detach();
  return false;
}

Failure open_session(const graph::Graph& graph,
                     const actors::SessionOptions& options,
                     OwnedSession& session) {
  auto made = actors::Session::create(options);
  if (!made.ok()) return run_time_error(std::move(made).status());
  session = std::move(made).value();
  return run_time_error(session->extend(graph));
}

bool is_session_left() { return sessions_left.load() > 0; }

}  // namespace tagflow::apps
