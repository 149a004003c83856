#include "net/protocol/membership.h"

#include <algorithm>

namespace tagflow::net {

bool may_join_later(Code code) {
  return code == Code::kAlreadyExists || code == Code::kAborted ||
         code == Code::kUnavailable;
}

void Membership::on_accepted(Incarnation incarnation, Time now) {
  if (state_ != State::kJoining || incarnation != incarnation_) return;
  state_ = State::kJoined;
  pause_ = kFirstPause;
  life_.emplace(now, rules_);
}

void Membership::on_refused(Incarnation incarnation, const Status& why,
                            Time now, uint64_t random, Actions& actions) {
  if (state_ != State::kJoining || incarnation != incarnation_) return;
  end(why, now, random, actions);
  if (may_join_later(why.code())) return;
  state_ = State::kGivenUp;
  next_ = kNever;
  actions.push_back(GiveUp{why});
}

void Membership::on_heard(Incarnation incarnation) {
  if (life_ && incarnation == incarnation_) life_->on_heard();
}

void Membership::on_lost(Incarnation incarnation, const Status& why, Time now,
                         uint64_t random, Actions& actions) {
  if (incarnation == Incarnation::kNone || incarnation != incarnation_) return;
  end(why, now, random, actions);
}

void Membership::on_time(Time now, uint64_t random, Actions& actions) {
  switch (state_) {
    case State::kGivenUp:
      return;
    case State::kWaiting:
      if (now < next_) return;
      state_ = State::kJoining;
      incarnation_ = Incarnation{std::max<uint64_t>(random, 1)};
      next_ = now + kPatience;
      actions.push_back(Join{incarnation_});
      return;
    case State::kJoining:
      if (now < next_) return;
      end(error(Code::kUnavailable,
                "[membership] the directory has not answered for {} ms",
                whole_milliseconds(kPatience)),
          now, random, actions);
      return;
    case State::kJoined:
      break;
  }
  const Life::Verdict verdict = life_->on_time(now);
  if (verdict == Life::Verdict::kPing) actions.push_back(Ping{});
  if (verdict == Life::Verdict::kLost)
    end(error(Code::kUnavailable,
              "[membership] the directory was silent for {} ms",
              whole_milliseconds(rules_.interval * rules_.most_missed)),
        now, random, actions);
}

Time Membership::next() const { return life_ ? life_->next() : next_; }

void Membership::end(const Status& why, Time now, uint64_t random,
                     Actions& actions) {
  actions.push_back(Clear{incarnation_, why});
  state_ = State::kWaiting;
  incarnation_ = Incarnation::kNone;
  life_.reset();
  const auto half = uint64_t((pause_ / 2).count());
  next_ = now + pause_ - Duration(int64_t(random % (half + 1)));
  pause_ = std::min(pause_ * 2, kLongestPause);
}

}  // namespace tagflow::net
