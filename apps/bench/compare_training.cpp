// Entries of gradients and of train steps. TensorFlow cannot read these graphs,
// which have ops of ours: compare.py builds the programs, and the results of
// both must agree.
#include "apps/bench/compare_entries.h"
#include "apps/bench/gradient_graphs.h"

namespace tagflow::apps {
namespace {

ComparePlan loop_gradient(std::string name, std::string what, std::string unit,
                          int trips, std::function<Result<BenchGraph>()> make) {
  ComparePlan plan;
  plan.entry.name = name;
  plan.entry.program = std::move(name);
  plan.entry.what = std::move(what);
  plan.entry.trips = trips;
  // TensorFlow rejects the gradient of a map_fn over no elements.
  plan.entry.base_trips = 1;
  plan.entry.units = trips - 1;
  plan.entry.scale = 1e6;
  plan.entry.unit = std::move(unit);
  plan.make = std::move(make);
  return plan;
}

ComparePlan train_step_of(std::string name, std::string what,
                          std::map<std::string, int> sizes,
                          std::function<Result<BenchGraph>()> make) {
  ComparePlan plan;
  plan.entry.name = name;
  plan.entry.program = std::move(name);
  plan.entry.sizes = std::move(sizes);
  plan.entry.what = std::move(what);
  plan.entry.threads = 2;
  plan.entry.scale = 1e3;
  plan.entry.unit = "ms";
  plan.make = std::move(make);
  return plan;
}

ComparePlan lstm_train(const LstmSize& size) {
  ComparePlan plan = train_step_of(
      "lstm_train",
      fmt::format("train step: LSTM, batch {}, {} steps of {}, {} units",
                  size.batch, size.steps, size.inputs, size.units),
      {{"batch", size.batch},
       {"steps", size.steps},
       {"inputs", size.inputs},
       {"units", size.units}},
      [=] { return make_lstm_train(size); });
  plan.entry.inner = size.is_short() ? 10 : 1;
  return plan;
}

}  // namespace

void add_gradient_plans(std::vector<ComparePlan>& plans) {
  plans.push_back(loop_gradient(
      "loop_grad", "loop of products, and its gradient", "us per iteration",
      5'000, [] { return make_loop_grad(); }));
  plans.push_back(loop_gradient("map_fn_grad",
                                "`map_fn` of a scalar function, its gradient",
                                "us per element", 5'000, make_map_fn_grad));
}

void add_training_plans(std::vector<ComparePlan>& plans) {
  plans.push_back(lstm_train({1, 100, 16, 16}));
  plans.push_back(lstm_train({32, 28, 28, 128}));
  plans.push_back(lstm_train({64, 100, 128, 512}));
  ComparePlan mlp = train_step_of(
      "mlp", "train step: 784-512-10, batch 128", {{"batch", 128}},
      [] { return make_train_step(PictureModel::kMlp, 128); });
  mlp.entry.inner = 5;
  plans.push_back(std::move(mlp));
  plans.push_back(train_step_of(
      "cnn", "train step: 2 convolutions 3 x 3, batch 64 of 28 x 28",
      {{"batch", 64}}, [] { return make_train_step(PictureModel::kCnn, 64); }));
}

}  // namespace tagflow::apps
