// An echo state network: a recurrent network whose own weights stay random, of
// which only what reads its state is trained; then it goes on by itself.
//
//   taught:  x[t] -> state[t] -> readout -> guess of x[t + 1]
//                      ^    |                  |
//                      +----+          error, gradient, momentum: "train"
//
//   alone:   guess -> state -> readout -> guess -> ...           (raw_rnn)
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kUnits = 32, kTaught = 300, kAlone = 10;
constexpr int kFirst = 50;  // before that the state knows too little

float signal(int t) {
  return 0.5f * std::sin(0.2f * float(t)) + 0.5f * std::sin(0.31f * float(t));
}
Tensor signal_from(int t, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(signal(t + i));
  return Tensor::of<float>({count, 1}, std::span<const float>(values));
}

// The guesses for a list of states.
Output read_out(const Scope& s, const VariableScope& vars,
                const Output& states) {
  const ScopedVariable w = vars.get(s, "readout", {kUnits, 1},
                                    {.initializer = initializers::zeros()});
  return matmul(s, states, w.read(s));
}

// One step of gradient descent with momentum on the mean of error^2.
Output descend(const Scope& s, const VariableScope& vars, const Output& states,
               const Output& error) {
  const ScopedVariable pace =
      vars.get(s, "pace", {kUnits, 1},
               {.initializer = initializers::zeros(), .trainable = false});
  const Output sum = matmul(s, states, error, {.transpose_a = true});
  const Output gradient = mul(s, sum, 2.0f / float(kTaught - kFirst));
  const VariableScope again = vars.with_reuse(Reuse::kAlways);
  const ScopedVariable w = again.get(s, "readout", {kUnits, 1});
  return s.op("ResourceApplyMomentum",
              {w.parts()[0].variable.handle, pace.parts()[0].variable.handle,
               1.0f, gradient, 0.9f});
}

// "init", "train", "loss", and "alone": the network's own guesses.
Status build(const Scope& s) {
  const VariableScope vars;
  const RnnCellPtr cell = basic_rnn_cell(
      {.units = kUnits, .kernel_initializer = initializers::orthogonal(0.9)});
  const Output inputs = constant(s, signal_from(0, kTaught));
  const RnnResult taught = dynamic_rnn(
      s, vars, *cell, expand_dims(s, inputs, 1), {.time_major = true});
  const Output states = slice(s, reshape(s, taught.outputs, {kTaught, kUnits}),
                              {kFirst, 0}, {-1, -1});
  const Output error =
      sub(s, read_out(s, vars, states),
          constant(s, signal_from(kFirst + 1, kTaught - kFirst)));
  reduce_mean(s.named("loss"), square(s, error));
  group(s.named("train"), descend(s, vars, states, error));

  // The same variables, fed with what they guess.
  const VariableScope again = vars.with_reuse(Reuse::kAlways);
  const RawRnnResult alone = raw_rnn(
      s, again, *cell,
      [&](const Scope& in, const Output& time, const RawRnnNow* now) {
        RawRnnNext next;
        next.finished = expand_dims(in, greater_equal(in, time, kAlone), 0);
        next.state = now == nullptr ? taught.state : now->state;
        const Output h = next.state[0];
        next.input = read_out(in, again, h);
        next.emit = now == nullptr ? fill(in, {1}, 0.0f) : next.input;
        return next;
      });
  reshape(s.named("alone"), alone.emitted[0].stack(s), {kAlone});
  vars.initialize(s.named("init"));
  return s.status();
}

Result<bool> run() {
  Graph graph;
  TAGFLOW_RETURN_IF_ERROR(build(Scope(graph)));
  TAGFLOW_ASSIGN(auto session, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_RETURN_IF_ERROR(session->run({}, {}, {"init"}).status());
  const auto loss = [&]() -> Result<float> {
    TAGFLOW_ASSIGN(const auto values, session->run({}, {"loss"}));
    return values[0].item<float>();
  };
  TAGFLOW_ASSIGN(const float before, loss());
  for (int i = 0; i < 600; ++i)
    TAGFLOW_RETURN_IF_ERROR(session->run({}, {}, {"train"}).status());
  TAGFLOW_ASSIGN(const float after, loss());
  TAGFLOW_ASSIGN(const auto guesses, session->run({}, {"alone"}));
  float apart = 0;
  for (int i = 0; i < kAlone; ++i)
    // The first one that it makes of its own guess is two on.
    apart = std::max(apart, std::abs(guesses[0].flat<float>()[size_t(i)] -
                                     signal(kTaught + 1 + i)));
  std::printf("the loss went from %.3f to %.5f; %d steps alone: %.2f off\n",
              double(before), double(after), kAlone, double(apart));
  return after < 0.001f && apart < 0.2f;
}

}  // namespace

int main() {
  const auto good = run();
  if (!good.ok())
    std::fprintf(stderr, "%s\n", good.status().to_string().c_str());
  return good.ok() && *good ? 0 : 1;
}
