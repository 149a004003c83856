// An asynchronous run, to be waited for.
#pragma once

#include <future>
#include <string>
#include <vector>

#include "tests/actors/sessions.h"

namespace tagflow::actors {

using Answer = Result<std::vector<Tensor>>;

struct Pending {
  Pending(Session& session, const std::string& fetch, RunOptions options = {}) {
    options.cancel = token;
    session.run_async({}, {fetch}, {}, options,
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

}  // namespace tagflow::actors
