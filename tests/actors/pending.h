// Waiting in tests, for an asynchronous run or for a condition.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/actors/sessions.h"

namespace tagflow::actors {

using Answer = Result<std::vector<Tensor>>;

// A run, to be waited for.
struct Pending {
  Pending(Session& session, const std::string& fetch, RunOptions options = {})
      : Pending(session, {}, std::vector{fetch}, std::move(options)) {}
  Pending(Session& session, const std::vector<Feed>& feeds,
          const std::vector<std::string>& fetches, RunOptions options) {
    options.cancel = token;
    session.run_async(feeds, fetches, {}, options,
                      [this](Answer answer, RunStats) {
                        promise.set_value(std::move(answer));
                      });
  }
  Answer get() { return future.get(); }
  bool answered() const {
    return future.wait_for(std::chrono::seconds(0)) ==
           std::future_status::ready;
  }

  CancelToken token;
  std::promise<Answer> promise;
  std::future<Answer> future = promise.get_future();
};

// Calls is_true() until it returns true. False if that takes longer than a
// minute.
template <class F>
bool comes_true(const F& is_true) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > late) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace tagflow::actors
