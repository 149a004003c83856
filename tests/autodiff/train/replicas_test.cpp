#include "autodiff/train/replicas.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "autodiff/train/clip.h"
#include "tests/autodiff/train/replicated.h"
#include "tests/autodiff/train/slow_replica.h"
#include "tests/autodiff/train/trainer.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

const OptimizerFn kAdam = [](const VariableScope& vars) {
  return optimizers::adam(vars, 0.05);
};

Outputs read_all(const Scope& s, const VariableScope& vars) {
  Outputs all;
  for (const ScopedVariable& variable : vars.trainable_variables())
    all.push_back(variable.read(s));
  return all;
}

std::vector<std::string> names_of(const Outputs& outputs) {
  std::vector<std::string> names;
  for (const Output& output : outputs) names.push_back(output.name());
  return names;
}

// The trainable variables after three steps, and the loss before each. All
// begin with the same numbers, whatever the devices are.
struct Trained {
  std::vector<Tensor> variables, copies;
  std::vector<float> losses;
};

// A step of one device, whose gradients are of the whole batch.
Trained train_whole(const OptimizerFn& make, const ApplyOptions& options) {
  Program p;
  const Output loss = embedding_loss(p.s, p.vars, 0, kExamples);
  make(p.vars).minimize(p.s.named("step"), loss, p.vars.trainable_variables(),
                        options);
  p.vars.initialize(p.s.named("init"));
  const Outputs variables = read_all(p.s, p.vars);
  DeviceSession session(p.s, {});
  session.run("init");
  Trained trained;
  for (int i = 0; i < 3; ++i)
    trained.losses.push_back(
        session.run({loss.name()}, {"step"})[0].scalar_value<float>());
  trained.variables = session.run(names_of(variables), {});
  return trained;
}

Trained train_parts(int count, int servers, int64_t ring_bytes,
                    const OptimizerFn& make, const ApplyOptions& options) {
  Program p;
  const Replicas replicas(p.s, p.vars,
                          {.devices = cpus(count),
                           .servers = cpus(servers),
                           .all_reduce = {.ring_bytes = ring_bytes}},
                          part_of_embedding(size_t(count)));
  replicas.minimize(p.s.named("step"), make, options);
  replicas.initialize(p.s.named("init"));
  const Outputs variables = read_all(p.s, p.vars);
  Outputs copies;
  for (int k = servers > 0 ? 0 : 1; k < count; ++k) {
    for (const ScopedVariable& base : p.vars.trainable_variables()) {
      Node* handle = p.graph.find(fmt::format("replica_{}/{}", k, base.name()));
      REQUIRE(handle != nullptr);
      copies.push_back(
          ops::read(p.s, {Output(handle), base.dtype(), base.shape()}));
    }
  }
  actors::SessionOptions session_options;
  session_options.devices = fmt::format("cpu:{}", count);
  DeviceSession session(p.s, session_options);
  session.run("init");
  Trained trained;
  for (int i = 0; i < 3; ++i) {
    float sum = 0;
    for (const Tensor& loss :
         session.run(names_of(replicas.losses()), {"step"}))
      sum += loss.scalar_value<float>();
    trained.losses.push_back(sum / float(count));
  }
  trained.variables = session.run(names_of(variables), {});
  trained.copies = session.run(names_of(copies), {});
  return trained;
}

void check_same(const Trained& found, const Trained& wanted) {
  for (size_t i = 0; i < wanted.losses.size(); ++i)
    CHECK(std::abs(found.losses[i] - wanted.losses[i]) < 1e-4);
  REQUIRE(found.variables.size() == wanted.variables.size());
  for (size_t i = 0; i < wanted.variables.size(); ++i)
    check_close(doubles_of(found.variables[i]), doubles_of(wanted.variables[i]),
                1e-4);
  for (size_t i = 0; i < found.copies.size(); ++i)
    CHECK(identical(found.copies[i],
                    found.variables[i % found.variables.size()]));
}

}  // namespace

TEST_CASE("replicas of parts of a batch take the steps of the whole batch") {
  const OptimizerFn rules[] = {
      [](const VariableScope& vars) { return optimizers::sgd(vars, 0.3); },
      [](const VariableScope& vars) { return optimizers::momentum(vars, 0.1); },
      kAdam};
  for (const OptimizerFn& rule : rules) {
    const Trained whole = train_whole(rule, {});
    CHECK(whole.losses[2] < whole.losses[0]);
    for (int count = 1; count <= 4; ++count) {
      CAPTURE(count);
      for (const int64_t ring_bytes : {0, 60, 1 << 20}) {
        CAPTURE(ring_bytes);
        check_same(train_parts(count, 0, ring_bytes, rule, {}), whole);
      }
      for (int servers = 1; servers <= std::min(count, 2); ++servers) {
        CAPTURE(servers);
        check_same(train_parts(count, servers, 0, rule, {}), whole);
      }
    }
  }
}

TEST_CASE("a transform of gradients sees the means over the replicas") {
  const ApplyOptions options{.transform = clipping_to(0.1)};
  const Trained whole = train_whole(kAdam, options);
  check_same(train_parts(3, 0, 60, kAdam, options), whole);
  check_same(train_parts(3, 1, 0, kAdam, options), whole);
}

// Sums of integers are exact in any order.
TEST_CASE("the mean of replicas is that of the whole batch if sums are exact") {
  for (int count = 1; count <= 4; ++count) {
    CAPTURE(count);
    Program p;
    const auto loss = [&](const Replica& r) {
      const Output w = r.vars
                           .get(r.s, "w", {17},
                                {.dtype = DataType::kDouble,
                                 .initializer = initializers::constant(3)})
                           .read(r.s);
      Outputs terms;
      const int64_t part = kExamples / count;
      for (int64_t i = 0; i < part; ++i)
        terms.push_back(
            ops::mul(r.s, ops::square(r.s, w),
                     double(count * (int64_t(r.index) * part + i + 1))));
      return ops::reduce_sum(r.s, ops::add_n(r.s, terms));
    };
    const Replicas replicas(
        p.s, p.vars, {.devices = cpus(count), .all_reduce = {.ring_bytes = 0}},
        loss);
    const ScopedVariable counter = global_step(p.s, p.vars);
    replicas.minimize(
        p.s.named("step"),
        [](const VariableScope& vars) { return optimizers::sgd(vars, 1); },
        {.global_step = counter});
    replicas.initialize(p.s.named("init"));
    const Outputs read = {read_all(p.s, p.vars)[0], counter.read(p.s)};
    actors::SessionOptions options;
    options.devices = fmt::format("cpu:{}", count);
    DeviceSession session(p.s, options);
    session.run("init");
    session.run("step");
    const auto results = session.run(names_of(read), {});
    // 3 - 2 * 3 * (1 + ... + 12)
    CHECK(doubles_of(results[0]) == Doubles(17, -465));
    CHECK(results[1].scalar_value<int64_t>() == 1);
  }
}

TEST_CASE("each device sends its neighbour 2 (n - 1) / n of the gradients") {
  for (int count = 2; count <= 4; ++count) {
    CAPTURE(count);
    Program p;
    const Replicas replicas(
        p.s, p.vars, {.devices = cpus(count), .all_reduce = {.ring_bytes = 0}},
        [](const Replica& r) {
          const Output w = r.vars.get(r.s, "w", {120}).read(r.s);
          return ops::reduce_sum(r.s, ops::square(r.s, w));
        });
    replicas.minimize(p.s, kAdam);
    REQUIRE(p.s.ok());
    // Elements of vectors; a tensor is sent to a device once.
    std::map<std::pair<std::string, std::string>, int64_t> links;
    std::set<std::pair<Output, std::string>,
             decltype([](const auto& a, const auto& b) {
               return std::pair(a.first.name(), a.second) <
                      std::pair(b.first.name(), b.second);
             })>
        sent;
    for (Node* node : p.graph.nodes()) {
      if (!node->name().starts_with("minimize/all_reduce")) continue;
      for (const Endpoint& input : node->inputs()) {
        const Output from(input);
        if (from.node()->device() == node->device() ||
            !sent.emplace(from, node->device()).second)
          continue;
        links[{from.node()->device(), node->device()}] +=
            from.shape().num_elements();
      }
    }
    CHECK(links.size() == size_t(count));
    const auto devices = cpus(count);
    for (size_t k = 0; k < devices.size(); ++k)
      CHECK(links[{devices[k], devices[(k + 1) % devices.size()]}] ==
            2 * (count - 1) * 120 / count);
  }
}

TEST_CASE("replicas are refused that have no device or other variables") {
  const auto message = [](ReplicaOptions options, const ReplicaLoss& loss) {
    Program p;
    const Replicas replicas(p.s, p.vars, std::move(options), loss);
    replicas.minimize(p.s, kAdam);
    replicas.initialize(p.s);
    return p.s.status().to_string();
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message({}, part_of_embedding(1)), "[Replicas] there are no devices");
  const auto with = [](const char* name, Shape shape, bool trainable) {
    return [=](const Replica& r) {
      r.vars.get(r.s, r.index == 0 ? "w" : name,
                 r.index == 0 ? Shape{2} : shape, {.trainable = trainable});
      return ops::reduce_sum(
          r.s, r.vars.with_reuse(Reuse::kAuto).get(r.s, "v", {3}).read(r.s));
    };
  };
  has(message({.devices = cpus(2)}, with("u", {2}, true)),
      "replica_1 has no variable \"w\"");
  has(message({.devices = cpus(2)}, with("w", {3}, true)),
      "replica_1 has another shape or type of \"w\"");
  has(message({.devices = cpus(2)}, with("u", {2}, false)),
      "only replica_1 has \"u\"");
  has(message({.devices = cpus(2), .servers = cpus(1)}, with("w", {2}, false)),
      "\"w\" is not trainable, and servers do not have such variables");
  Program p;
  const Replicas replicas(p.s, p.vars, {.devices = cpus(2)},
                          part_of_embedding(2));
  CHECK(replicas.minimize_each(p.s, kAdam).empty());
  has(p.s.status().to_string(), "needs servers, and the variables are mirror");
}

TEST_CASE("an asynchronous replica applies its gradients as they come") {
  actors::SessionOptions options;
  options.devices = "cpu:2";
  check_asynchronous(cpus(2), options);
}

TEST_CASE("gradients of a backup replica that come late are dropped") {
  actors::SessionOptions options;
  options.devices = "cpu:3";
  check_backup(cpus(3), options);
}
