// The sieve of Eratosthenes: the primes below n.
//
//                             +----- p += 1 -----------------------+
//                             v                                    |
//   is_prime = 1 from 2 on --> p * p < n ? --yes--> is_prime[p] ? -+
//   p = 2                     |                     |     |        |
//                             |                     no    yes      |
//                             |                     |     v        |
//                             |                     |  cross out --+
//                             |                     +--> as it is -+
//                             no--> where is_prime
//
// A conditional in a loop: the multiples of p are only looked for if p is a
// prime, and a branch that is not taken costs a dead token, not a pass over
// all numbers.
#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

struct State {
  Output p, is_prime;
  TAGFLOW_FIELDS(p, is_prime)
};

Output primes_below(const Scope& s, const Output& n) {
  const Output numbers = range(s, 0, n, 1);
  // True where a number is not a multiple of p, or p itself.
  const auto stays = [&](const Scope& in, const Output& p) {
    const Output rest = floor_mod(in, numbers, p);
    return logical_or(in, not_equal(in, rest, 0), equal(in, numbers, p));
  };
  const State last = while_loop(
      s,
      [&](const Scope& in, const State& v) {
        return less(in, mul(in, v.p, v.p), n);
      },
      [&](const Scope& in, const State& v) {
        const Output sieved = cond(
            in, gather(in, v.is_prime, v.p),
            [&](const Scope& yes) {
              return logical_and(yes, v.is_prime, stays(yes, v.p));
            },
            [&](const Scope&) { return v.is_prime; })[0];
        return State{add(in, v.p, 1), sieved};
      },
      State{constant(s, 2), greater_equal(s, numbers, 2)});
  return squeeze(s, where(s, last.is_prime), {1});
}

bool is_prime(int64_t number) {
  for (int64_t d = 2; d * d <= number; ++d)
    if (number % d == 0) return false;
  return number >= 2;
}

}  // namespace

int main() {
  constexpr int kLimit = 1000;
  Graph graph;
  const Scope s(graph);
  const Output n =
      placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  const Output primes = primes_below(s, n);
  const auto result =
      examples::run(s, {{"n", Tensor::scalar(kLimit)}}, {primes})[0];

  std::vector<int64_t> expected;
  for (int64_t i = 0; i < kLimit; ++i)
    if (is_prime(i)) expected.push_back(i);
  const auto found = result.flat<int64_t>();
  std::printf("%zu primes below %d, the last is %lld\n", found.size(), kLimit,
              static_cast<long long>(found.back()));
  return std::equal(found.begin(), found.end(), expected.begin(),
                    expected.end())
             ? 0
             : 1;
}
