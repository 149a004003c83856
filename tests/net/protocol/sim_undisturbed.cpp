#include "tests/net/protocol/sim_undisturbed.h"

#include "tests/net/protocol/sim_world.h"

namespace tagflow::net::simulated {

namespace {

using Kind = Op::Kind;

constexpr size_t kRounds = 2;  // of the exchange
constexpr int64_t kAhead = 2;  // rows

uint64_t random_number(uint64_t seed, size_t variable, int64_t run) {
  return mixed(seed ^ mixed(variable * 1'000'003 + uint64_t(run)));
}

Script empty_script(size_t num_parts) {
  Script script;
  script.parts.resize(num_parts);
  script.parallel = 2 * kRounds;
  return script;
}

// Of one op for each variable.
Script script_of(size_t num_variables, size_t num_parts, Kind kind) {
  Script script = empty_script(num_parts);
  for (size_t i = 0; i < num_variables; ++i)
    script.parts[i % num_parts].lanes.push_back(
        {Op{.kind = kind, .time = microseconds(300), .variable = i}});
  return script;
}

}  // namespace

uint64_t row_of(size_t variable, int64_t step) {
  return mixed(variable * 7'919 + uint64_t(step));
}

Shards first_shards(size_t num_variables, uint64_t seed) {
  Shards shards;
  for (size_t i = 0; i < num_variables; ++i) {
    shards[i].value = random_number(seed, i, 0);
    for (int64_t step = 1; step <= kAhead; ++step)
      shards[i].rows.push_back(row_of(i, step));
  }
  return shards;
}

uint64_t read_shard(Shard& shard, size_t variable, uint64_t seed) {
  uint64_t value = shard.value;
  if (!shard.rows.empty()) {
    value ^= shard.rows.front();
    shard.rows.erase(shard.rows.begin());
  }
  return mixed(value ^ random_number(seed, variable, ++shard.runs));
}

void update_shard(Shard& shard, size_t variable, uint64_t value) {
  shard.value = mixed(shard.value * 3 + value);
  ++shard.steps;
  shard.rows.push_back(row_of(variable, shard.steps + kAhead));
}

Script training_script(size_t num_variables, size_t num_parts, int64_t number,
                       uint64_t seed) {
  Script script = empty_script(num_parts);
  script.number = number;
  script.seed = seed;
  for (size_t i = 0; i < num_variables; ++i) {
    std::vector<Op> ops = {
        Op{.kind = Kind::kRead, .time = microseconds(200), .variable = i}};
    const size_t next = (i + 1) % num_variables;
    const size_t last = (i + num_variables - 1) % num_variables;
    for (size_t round = 0; round < kRounds && num_variables > 1; ++round) {
      const auto first = uint32_t(round * num_variables);
      ops.push_back(Op{.kind = Kind::kSend,
                       .transfer = first + uint32_t(i),
                       .peer = next % num_parts,
                       .bytes = round == 0 ? 200u : 9000u});
      ops.push_back(Op{.kind = Kind::kRecv,
                       .transfer = first + uint32_t(last),
                       .peer = last % num_parts});
    }
    ops.push_back(
        Op{.kind = Kind::kUpdate, .time = milliseconds(1), .variable = i});
    Part& part = script.parts[i % num_parts];
    part.lanes.push_back(std::move(ops));
    part.updates = true;
    ++part.num_updates;
  }
  return script;
}

Script load_script(const Shards& shards, size_t num_parts) {
  Script script = script_of(shards.size(), num_parts, Kind::kUpdate);
  script.restores = true;
  script.loaded = shards;
  for (Part& part : script.parts) {
    part.updates = !part.lanes.empty();
    part.num_updates = part.lanes.size();
  }
  return script;
}

Script fetch_script(size_t num_variables, size_t num_parts) {
  return script_of(num_variables, num_parts, Kind::kFetch);
}

Script log_script(size_t num_parts, size_t variable, uint64_t element) {
  Script script = empty_script(num_parts);
  script.seed = element;
  script.parts[variable % num_parts].lanes.push_back(
      {Op{.kind = Kind::kLog, .time = milliseconds(2), .variable = variable}});
  return script;
}

const Shards& Undisturbed::shards(int64_t step) {
  run_to(step);
  return shards_[size_t(step)];
}

uint64_t Undisturbed::value(int64_t step) {
  run_to(step);
  return values_[size_t(step)];
}

void Undisturbed::run_to(int64_t step) {
  while (int64_t(shards_.size()) <= step) {
    Shards shards = shards_.back();
    std::vector<uint64_t> values;
    for (auto& [variable, shard] : shards)
      values.push_back(read_shard(shard, variable, seed_));
    for (size_t round = 0; round < kRounds && num_variables_ > 1; ++round) {
      const std::vector<uint64_t> before = values;
      for (size_t i = 0; i < num_variables_; ++i) {
        const size_t last = (i + num_variables_ - 1) % num_variables_;
        const auto transfer = uint32_t(round * num_variables_ + last);
        values[i] = value_after(
            before[i], {.value = sent_value(before[last], transfer, 0)});
      }
    }
    uint64_t sum = 0;
    for (auto& [variable, shard] : shards) {
      update_shard(shard, variable, values[variable]);
      sum += values[variable];
    }
    shards_.push_back(std::move(shards));
    values_.push_back(sum);
  }
}

}  // namespace tagflow::net::simulated
