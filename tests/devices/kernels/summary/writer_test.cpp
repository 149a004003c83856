// Event files that ops write.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "devices/commit_gate.h"
#include "devices/state/resource_manager.h"
#include "graph/proto/graph.pb.h"
#include "tests/devices/files/event_records.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

using checkpoint::events_of_folder;
using checkpoint::TempFolder;

class Writers {
 public:
  Writers() { step_.state = &state_; }
  void set_gate(CommitGate* gate) { step_.commits = gate; }

  Result<Outputs> run(std::string_view op, const std::vector<Tensor>& inputs,
                      AttrMap attrs = {}) {
    return run_op(op, inputs, std::move(attrs), &step_);
  }
  void must_run(std::string_view op, const std::vector<Tensor>& inputs,
                AttrMap attrs = {}) {
    const auto outputs = run(op, inputs, std::move(attrs));
    CAPTURE(op);
    INFO(outputs.status().to_string());
    CHECK(outputs.ok());
  }
  Tensor handle(const std::string& name) {
    auto outputs = run("SummaryWriter", {}, {{"shared_name", name}});
    REQUIRE(outputs.ok());
    return (*outputs)[0];
  }
  Result<Outputs> open(const Tensor& writer, const std::string& folder) {
    return run("CreateSummaryFileWriter",
               {writer, Tensor::scalar(folder), Tensor::scalar<int32_t>(10),
                Tensor::scalar<int32_t>(1000), Tensor::scalar(".end")});
  }

 private:
  ResourceManager state_;
  StepInfo step_;
};

const Tensor kStep = Tensor::scalar<int64_t>(4);
const Tensor kTag = Tensor::scalar("t");

}  // namespace

TEST_CASE("a file is opened outside of the gate of the step") {
  const TempFolder folder("gate");
  Writers writers;
  const Tensor writer = writers.handle("w");
  CommitGate gate([] {});
  writers.set_gate(&gate);
  // It fails before anything of the state would be changed.
  CHECK(!writers.open(writer, "/proc/no/such/folder").ok());
  CHECK(!gate.was_entered());
  CHECK(writers.open(writer, folder.path("run")).ok());
  CHECK(gate.was_entered());
  CHECK(!gate.is_entered());
}

TEST_CASE("a step that has been answered opens no file, and leaves none") {
  const TempFolder folder("answered");
  Writers writers;
  const Tensor writer = writers.handle("w");
  CommitGate gate([] {});
  CHECK(gate.close());
  writers.set_gate(&gate);
  CHECK(writers.open(writer, folder.path("run")).status().code() ==
        Code::kCancelled);
  CHECK(std::filesystem::is_empty(folder.path("run")));
  writers.set_gate(nullptr);
  CHECK(writers
            .run("WriteScalarSummary",
                 {writer, kStep, kTag, Tensor::scalar<int32_t>(7)})
            .status()
            .code() == Code::kNotFound);
}

TEST_CASE("ops write each kind of summary") {
  const TempFolder folder("events");
  Writers writers;
  const Tensor writer = writers.handle("w");
  CHECK(writers.open(writer, folder.path("run")).ok());
  // A second one changes nothing.
  CHECK(writers.open(writer, folder.path("other")).ok());
  const Tensor picture = Tensor::make(DataType::kUInt8, {1, 1, 1, 1});
  writers.must_run("WriteScalarSummary",
                   {writer, kStep, kTag, Tensor::scalar<int32_t>(7)});
  writers.must_run("WriteHistogramSummary",
                   {writer, kStep, kTag, Tensor::of<bool>({2}, {true, false})});
  writers.must_run(
      "WriteImageSummary",
      {writer, kStep, kTag, picture, Tensor::vector<uint8_t>({255, 0, 0, 255})},
      {{"max_images", int64_t{1}}});
  writers.must_run("WriteAudioSummary",
                   {writer, kStep, kTag, Tensor::make(DataType::kFloat, {1, 2}),
                    Tensor::scalar(8000.0F)});
  writers.must_run("WriteSummary", {writer, kStep, Tensor::scalar("text"), kTag,
                                    Tensor::scalar("\n\x03\n\x01p")});
  const auto raw = run_op("ScalarSummary", {kTag, Tensor::scalar(2.5F)});
  REQUIRE(raw.ok());
  writers.must_run("WriteRawProtoSummary", {writer, kStep, (*raw)[0]});
  tensorflow::GraphDef graph;
  graph.add_node()->set_name("n");
  writers.must_run("WriteGraphSummary",
                   {writer, kStep, Tensor::scalar(graph.SerializeAsString())});
  tensorflow::Event imported;
  imported.set_step(99);
  imported.set_wall_time(5);
  writers.must_run("ImportEvent",
                   {writer, Tensor::scalar(imported.SerializeAsString())});
  writers.must_run("FlushSummaryWriter", {writer});

  CHECK(!std::filesystem::exists(folder.path("other")));
  const auto events = events_of_folder(folder.path("run"));
  REQUIRE(events.ok());
  REQUIRE(events->size() == 9);
  for (size_t i = 1; i < 8; ++i) {
    CHECK((*events)[i].step() == 4);
    CHECK((*events)[i].wall_time() > 1e9);
  }
  const auto value = [&](size_t i) { return (*events)[i].summary().value(0); };
  CHECK(value(1).simple_value() == 7);
  CHECK(value(2).histo().num() == 2);
  CHECK(value(3).tag() == "t/image");
  CHECK(value(4).audio().length_frames() == 2);
  CHECK(value(5).metadata().plugin_data().plugin_name() == "p");
  CHECK(value(5).tensor().string_val(0) == "text");
  CHECK(value(6).simple_value() == 2.5F);
  CHECK((*events)[7].graph_def() == graph.SerializeAsString());
  CHECK((*events)[8].step() == 99);
  CHECK((*events)[8].wall_time() == 5);
}

TEST_CASE("a writer has a file from its creation to its closing") {
  const TempFolder folder("events");
  Writers writers;
  const Tensor writer = writers.handle("w");
  const std::vector<Tensor> value = {writer, kStep, kTag, Tensor::scalar(1.0F)};
  const char* const text = "summary writer \"w\" has no file";
  expect_error(writers.run("WriteScalarSummary", value), Code::kNotFound, text);
  expect_error(writers.run("CloseSummaryWriter", {writer}), Code::kNotFound,
               text);
  CHECK(writers.open(writer, folder.path("run")).ok());
  writers.must_run("WriteScalarSummary", value);
  writers.must_run("CloseSummaryWriter", {writer});
  expect_error(writers.run("FlushSummaryWriter", {writer}), Code::kNotFound,
               text);
  CHECK(writers.open(writer, folder.path("run")).ok());
  writers.must_run("WriteScalarSummary", value);
  writers.must_run("CloseSummaryWriter", {writer});
  // Two files, each with its version.
  const auto events = events_of_folder(folder.path("run"));
  REQUIRE(events.ok());
  CHECK(events->size() == 4);
}

TEST_CASE("a session that ends writes what waits") {
  const TempFolder folder("events");
  {
    Writers writers;
    const Tensor writer = writers.handle("w");
    CHECK(writers.open(writer, folder.path("run")).ok());
    writers.must_run("WriteScalarSummary",
                     {writer, kStep, kTag, Tensor::scalar(1.0F)});
  }
  const auto events = events_of_folder(folder.path("run"));
  REQUIRE(events.ok());
  CHECK(events->size() == 2);
}

TEST_CASE("what is not a message is not written") {
  const TempFolder folder("events");
  Writers writers;
  const Tensor writer = writers.handle("w");
  CHECK(writers.open(writer, folder.path("run")).ok());
  const Tensor bad = Tensor::scalar("\xff");
  for (const char* op : {"WriteRawProtoSummary", "WriteGraphSummary"})
    expect_error(writers.run(op, {writer, kStep, bad}), Code::kDataLoss,
                 "1 bytes are not a");
  expect_error(writers.run("ImportEvent", {writer, bad}), Code::kDataLoss,
               "1 bytes are not an event");
  expect_error(writers.run("WriteScalarSummary",
                           {writer, kStep, kTag, Tensor::vector<float>({})}),
               Code::kInvalidArgument, "float[0] has no element");
  expect_error(writers.run("WriteScalarSummary",
                           {Tensor::scalar(1), kStep, kTag, Tensor::scalar(1)}),
               Code::kInvalidArgument, "resource is wanted as writer");
  writers.must_run("CloseSummaryWriter", {writer});
  CHECK(events_of_folder(folder.path("run"))->size() == 1);
}

}  // namespace tagflow::devices
