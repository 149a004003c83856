// Models that TensorFlow wrote train here as they did there, step by step.
//
// The folders of tests/apps/models are small ones. TAGFLOW_MODELS may name
// another folder of such: tests/with_tensorflow/trained_models.py does.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "actors/checkpoint/saved_model.h"
#include "actors/session/queue_runners.h"
#include "apps/shared/io/file.h"
#include "apps/shared/io/json_tensor.h"
#include "apps/shared/io/npy.h"
#include "tests/source_path.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;
using actors::Feed;
using actors::SavedModel;
using Json = nlohmann::json;

constexpr double kTolerance = 1e-4;

template <class T>
T must(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  return std::move(result).value();
}

void must(const Status& status) {
  REQUIRE_MESSAGE(status.ok(), status.to_string());
}

// How far apart two are, of what is more than one relatively.
double distance(double actual, double wanted) {
  return std::abs(actual - wanted) / std::max(1.0, std::abs(wanted));
}

Tensor read_values(const fs::path& path) {
  if (path.extension() == ".npy") return must(io::read_npy(path));
  return must(
      io::parse_json_file(must(io::read_file(path)), DataType::kString));
}

// Rows `first` to `first + count` of a tensor.
template <class T>
Tensor copy_rows(const Tensor& tensor, const Shape& shape, int64_t first) {
  Tensor rows = Tensor::make(tensor.dtype(), shape);
  const int64_t count = shape.num_elements();
  const auto all = tensor.flat<T>();
  const int64_t width = count / std::max<int64_t>(shape.dim(0), 1);
  std::copy_n(all.begin() + first * width, count,
              rows.mutable_flat<T>().begin());
  return rows;
}

Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count) {
  Shape shape = tensor.shape();
  shape.set_dim(0, count);
  switch (tensor.dtype()) {
    case DataType::kFloat:
      return copy_rows<float>(tensor, shape, first);
    case DataType::kInt64:
      return copy_rows<int64_t>(tensor, shape, first);
    default:
      return copy_rows<std::string>(tensor, shape, first);
  }
}

// A recorded run of a model: tests/with_tensorflow/models/recording.py.
class Recorded {
 public:
  explicit Recorded(fs::path folder)
      : folder_(std::move(folder)),
        case_(Json::parse(must(io::read_file(folder_ / "case.json")))) {}

  std::unique_ptr<SavedModel> load() const {
    return must(SavedModel::load(folder_ / text("model")));
  }

  // The losses of all steps, from its start on.
  std::vector<double> train(SavedModel& model) const {
    if (case_["init"].is_string())
      must(model.session().run({}, {}, {text("init")}).status());
    actors::Coordinator threads;
    must(start_queue_runners(model.session(), model.queue_runners(), threads));
    const auto feeds = read(case_["feeds"]);
    const auto batch = case_["batch"].get<int64_t>();
    std::vector<double> losses;
    for (size_t step = 0; step < wanted().size(); ++step) {
      SavedModel::Tensors fed;
      for (const auto& [name, rows] : feeds)
        fed[name] = rows_of(rows, int64_t(step) * batch, batch);
      const Tensor loss =
          run(model, case_["signature"], fed, text("fetch"), case_["targets"]);
      losses.push_back(loss.scalar_value<float>());
    }
    threads.request_stop();
    must(threads.join());
    return losses;
  }

  std::vector<double> wanted() const {
    return case_["losses"].get<std::vector<double>>();
  }

  // How far what the trained model predicts is from what it is to.
  double distance_of_prediction(SavedModel& model) const {
    const Json& predict = case_["predict"];
    if (predict.is_null()) return 0;
    const Tensor actual =
        run(model, predict["signature"], read(predict["feeds"]),
            predict["fetch"].get<std::string>(), Json::array());
    const Tensor wanted =
        read_values(folder_ / predict["value"].get<std::string>());
    REQUIRE(actual.shape() == wanted.shape());
    double most = 0;
    for (size_t i = 0; i < wanted.flat<float>().size(); ++i)
      most = std::max(
          most, distance(actual.flat<float>()[i], wanted.flat<float>()[i]));
    return most;
  }

 private:
  std::string text(const char* key) const {
    return case_[key].get<std::string>();
  }

  SavedModel::Tensors read(const Json& files) const {
    SavedModel::Tensors tensors;
    for (const auto& [name, file] : files.items())
      tensors[name] = read_values(folder_ / file.get<std::string>());
    return tensors;
  }

  // Of a signature, or of a graph whose tensors have these names.
  static Tensor run(SavedModel& model, const Json& signature,
                    const SavedModel::Tensors& inputs, const std::string& fetch,
                    const Json& targets) {
    if (signature.is_string())
      return must(model.run(signature.get<std::string>(), inputs)).at(fetch);
    const std::vector<Feed> feeds(inputs.begin(), inputs.end());
    return must(model.session().run(
        feeds, {fetch}, targets.get<std::vector<std::string>>()))[0];
  }

  const fs::path folder_;
  const Json case_;
};

std::set<fs::path> recorded_models() {
  const char* other = std::getenv("TAGFLOW_MODELS");
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(
           other != nullptr ? fs::path(other)
                            : fs::path(source_path("tests/apps/models"))))
    if (entry.is_directory()) folders.insert(entry.path());
  return folders;
}

}  // namespace

TEST_CASE("models that TensorFlow wrote train to the same losses") {
  const std::set<fs::path> folders = recorded_models();
  CHECK(!folders.empty());
  for (const fs::path& folder : folders) {
    SUBCASE(folder.filename().c_str()) {
      const Recorded recorded(folder);
      const auto model = recorded.load();
      const std::vector<double> wanted = recorded.wanted();
      const std::vector<double> losses = recorded.train(*model);
      REQUIRE(losses.size() == wanted.size());
      double most = 0;
      for (size_t i = 0; i < losses.size(); ++i) {
        most = std::max(most, distance(losses[i], wanted[i]));
        CAPTURE(i);
        CHECK_MESSAGE(
            distance(losses[i], wanted[i]) < kTolerance,
            fmt::format("loss {} instead of {}", losses[i], wanted[i]));
      }
      const double predicted = recorded.distance_of_prediction(*model);
      CHECK(predicted < kTolerance);
      MESSAGE(fmt::format(
          "{}: {} losses, {} to {}, are at most {:.1e} apart, predictions "
          "{:.1e}",
          folder.filename().string(), losses.size(), losses.front(),
          losses.back(), most, predicted));
    }
  }
}

}  // namespace tagflow::apps
