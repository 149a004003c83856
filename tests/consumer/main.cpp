// A program of a user of the installed library: it runs graphs with ops of this
// project, and prints errors, if there are any.
#include <chrono>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/session/session.h"
#include "autodiff/gradients.h"
#include "devices/kernel_registry.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "mailbox.h"
#include "own_ops.h"

using namespace tagflow;         // NOLINT: a program
using namespace tagflow::graph;  // NOLINT
using actors::CancelToken;
using actors::RunOptions;
using actors::Session;

namespace {

int faults = 0;

void expect(bool is_so, const std::string& what) {
  if (is_so) return;
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  ++faults;
}

std::unique_ptr<Session> open(const Graph& graph) {
  auto session = Session::create({}).value();
  const Status status = session->extend(graph);
  expect(status.ok(), status.to_string());
  return session;
}

void parses_numbers() {
  Graph graph;
  const Scope s(graph);
  const Output text = ops::placeholder(s.named("text"), DataType::kString);
  s.named("number").op("ParseNumber", {text});
  const auto session = open(graph);
  const auto good = session->run({{"text", Tensor::scalar("2.5")}}, {"number"});
  expect(good.ok() && (*good)[0].scalar_value<double>() == 2.5, "2.5");
  const auto bad = session->run({{"text", Tensor::scalar("two")}}, {"number"});
  expect(bad.status().code() == Code::kInvalidArgument &&
             bad.status().message().find("\"two\"") != std::string::npos,
         "the text is not a number: " + bad.status().to_string());
  expect(!s.op("ParseNumber", {Tensor::vector<double>({1})}).node() && !s.ok(),
         "a number that is not a text");
}

class ThrowingKernel final : public devices::CheapKernel {
 public:
  explicit ThrowingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext&) const override {
    throw std::runtime_error("out of luck");
  }
};

void survives_what_is_thrown() {
  expect(OpRegistry::global()
             .add(OpDefBuilder("Throwing").output("none: float").build())
             .ok(),
         "an op of this file");
  devices::KernelRegistry::global().add<ThrowingKernel>("Throwing");
  Graph graph;
  const Scope s(graph);
  s.named("throwing").op("Throwing", {});
  const auto session = open(graph);
  for (int i = 0; i < 2; ++i) {
    const auto result = session->run({}, {"throwing"});
    expect(result.status().message().find("out of luck") != std::string::npos,
           "what is thrown: " + result.status().to_string());
  }
}

// 1 + 2x three times over: x, 1 + 2x, 3 + 4x, 7 + 8x.
void computes_polynomials_in_a_loop() {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat);
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                in.op("Polynomial", {v[1]},
                      {{"coefficients", std::vector<float>{1, 2}}})};
      },
      {0, x});
  ops::identity(s.named("y"), last[1]);
  expect(s.ok(), s.status().to_string());
  const auto session = open(graph);
  const std::vector<float> values(300'000, 0.5f);
  const auto y = session->run(
      {{"x", Tensor::of<float>({300'000}, std::span(values))}}, {"y"});
  expect(y.ok(), y.status().to_string());
  if (y.ok())
    for (const float value : (*y)[0].flat<float>())
      if (value != 11) return expect(false, "7 + 8x at 0.5");

  Graph refused;
  const Scope bad(refused);
  bad.op("Polynomial", {1.0}, {{"coefficients", std::vector<float>{}}});
  expect(!bad.ok(), "a polynomial without coefficients");
}

// x^2 twice over is x^4, whose derivatives are 4 x^3 and 12 x^2.
void differentiates_polynomials_in_a_loop() {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat);
  const Output y = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 2); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                in.op("Polynomial", {v[1]},
                      {{"coefficients", std::vector<float>{0, 0, 1}}})};
      },
      {0, x})[1];
  const Output first = autodiff::dense_gradients(s, {y}, {x})[0];
  const Output second = autodiff::dense_gradients(s, {first}, {x})[0];
  expect(s.ok(), s.status().to_string());
  const auto results = open(graph)->run({{"x", Tensor::scalar(2.0f)}},
                                        {first.name(), second.name()});
  expect(results.ok(), results.status().to_string());
  if (results.ok())
    expect((*results)[0].scalar_value<float>() == 32 &&
               (*results)[1].scalar_value<float>() == 48,
           "the derivatives of x^4 at 2");

  const Output constant =
      s.op("Polynomial", {x}, {{"coefficients", std::vector<float>{3}}});
  const auto none = autodiff::gradients(s, {constant}, {x});
  expect(s.ok() && !none[0].valid(), "a constant depends on nothing");
}

// Where Take is, and the answer of a run that fetches it.
class Taking {
 public:
  Taking(Session& session, const RunOptions& options) {
    session.run_async(
        {}, {"take"}, {}, options,
        [this](const auto& result, const auto&) { answer_.set_value(result); });
  }
  Result<std::vector<Tensor>> answer() { return answer_.get_future().get(); }

 private:
  std::promise<Result<std::vector<Tensor>>> answer_;
};

void until_waiting(size_t count) {
  while (Mailbox::global().waiting() != count) std::this_thread::yield();
}

void expect_value(const Result<std::vector<Tensor>>& result, double value) {
  expect(result.ok(), result.status().to_string());
  if (result.ok())
    expect((*result)[0].scalar_value<double>() == value,
           "the value " + std::to_string(value));
}

void expect_code(const Result<std::vector<Tensor>>& result, Code code) {
  expect(result.status().code() == code, result.status().to_string());
}

void waits_for_values() {
  Mailbox& mailbox = Mailbox::global();
  Graph graph;
  const Scope s(graph);
  s.named("take").op("Take", {});
  const Output x = ops::placeholder(s.named("x"), DataType::kDouble);
  s.named("put").op("Put", {x});
  auto session = open(graph);

  Taking first(*session, {});
  until_waiting(1);
  mailbox.put(7);
  expect_value(first.answer(), 7);

  RunOptions options;
  options.cancel.emplace();
  Taking cancelled(*session, options);
  until_waiting(1);
  options.cancel->cancel();
  expect_code(cancelled.answer(), Code::kCancelled);
  expect(mailbox.waiting() == 0, "who is cancelled waits no more");

  RunOptions brief;
  brief.timeout = std::chrono::milliseconds(200);
  Taking late(*session, brief);
  const auto expired = late.answer();
  expect_code(expired, Code::kDeadlineExceeded);
  expect(expired.status().message().find("take") != std::string::npos,
         "a time-out names the wait: " + expired.status().to_string());

  // One run's Put serves another one's Take.
  Taking second(*session, {});
  until_waiting(1);
  const auto put = session->run({{"x", Tensor::scalar(8.0)}}, {}, {"put"});
  expect(put.ok(), put.status().to_string());
  expect_value(second.answer(), 8);

  // What nobody waited for is there at once.
  mailbox.put(9);
  Taking third(*session, {});
  expect_value(third.answer(), 9);

  // Values that meet cancellations go to somebody once, or stay. (A run that
  // was cancelled may have taken its value before.)
  size_t taken = 0;
  constexpr size_t kRounds = 200;
  for (size_t i = 0; i < kRounds; ++i) {
    options.cancel.emplace();
    Taking either(*session, options);
    std::thread putting([&] { mailbox.put(1); });
    options.cancel->cancel();
    if (either.answer().ok()) ++taken;
    putting.join();
  }
  expect(taken + mailbox.size() <= kRounds && mailbox.waiting() == 0,
         "no value is doubled, and nobody waits");

  while (mailbox.size() != 0)
    expect(Taking(*session, {}).answer().ok(), "what is left");
  Taking last(*session, {});
  until_waiting(1);
  session.reset();
  expect_code(last.answer(), Code::kCancelled);
}

}  // namespace

int main() {
  for (const Status& status :
       {add_parse_number(), add_polynomial(), add_mailbox_ops()})
    expect(status.ok(), status.to_string());
  expect(add_polynomial().code() == Code::kAlreadyExists, "a second time");
  parses_numbers();
  survives_what_is_thrown();
  add_polynomial_gradient();
  computes_polynomials_in_a_loop();
  differentiates_polynomials_in_a_loop();
  waits_for_values();
  if (faults == 0) std::printf("consumer: ok\n");
  return faults == 0 ? 0 : 1;
}
