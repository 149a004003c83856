#include "net/service/run_turns.h"

#include <algorithm>

namespace tagflow::net {

void RunTurns::add(Client client, Run run, Starts& starts) {
  Starts one{run};
  auto found = clients_.find(client);
  if (found == clients_.end()) {
    Runs made;
    made.place.push_back(client);
    found = clients_.emplace(client, std::move(made)).first;
  }
  Runs& runs = found->second;
  runs.queue.splice(runs.queue.end(), one);
  rotation_.splice(rotation_.end(), runs.place);
  start_next(starts);
}

void RunTurns::remove(Client client, Run run, Starts& starts) noexcept {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  Runs& runs = found->second;
  if (const auto place = std::ranges::find(runs.queue, run);
      place != runs.queue.end()) {
    runs.queue.erase(place);
    if (runs.queue.empty())
      runs.place.splice(runs.place.end(), rotation_,
                        std::ranges::find(rotation_, client));
  } else if (runs.begun > 0) {
    --runs.begun;
    // Which of them has ended is not known; the next look corrects it.
    if (runs.waiting > runs.begun) {
      --runs.waiting;
    } else {
      --computing_;
    }
  }
  if (runs.queue.empty() && runs.begun == 0) clients_.erase(found);
  start_next(starts);
}

void RunTurns::set_waiting(Client client, size_t count,
                           Starts& starts) noexcept {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  Runs& runs = found->second;
  count = std::min(count, runs.begun);
  computing_ = computing_ + runs.waiting - count;
  runs.waiting = count;
  start_next(starts);
}

RunTurns::Sizes RunTurns::sizes() const {
  Sizes sizes;
  for (const auto& [client, runs] : clients_) {
    sizes.begun += runs.begun;
    sizes.waiting += runs.waiting;
    sizes.queued += runs.queue.size();
  }
  return sizes;
}

std::list<RunTurns::Client>::iterator RunTurns::next() {
  if (computing_ < most_) return rotation_.begin();
  if (own_ == 0) return rotation_.end();
  return std::ranges::find_if(rotation_, [this](Client client) {
    return clients_.at(client).computing() < own_;
  });
}

void RunTurns::start_next(Starts& starts) noexcept {
  for (auto at = next(); at != rotation_.end(); at = next()) {
    Runs& runs = clients_.find(*at)->second;
    starts.splice(starts.end(), runs.queue, runs.queue.begin());
    ++runs.begun;
    ++computing_;
    // Behind the others, if it has more.
    auto& to = runs.queue.empty() ? runs.place : rotation_;
    to.splice(to.end(), rotation_, at);
  }
}

}  // namespace tagflow::net
