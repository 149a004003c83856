#include "actors/watch/summary_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "actors/watch/step_stats.h"
#include "actors/watch/trace.h"
#include "graph/proto/step_stats.pb.h"
#include "tests/actors/program.h"
#include "tests/devices/files/event_records.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::Output;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

namespace {

// A loop of three trips over a matrix.
Output three_products(const Scope& s) {
  return graph::while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                ops::matmul(in.named("product"), v[1], v[1])};
      },
      {0, ops::fill(s, Tensor::vector<int32_t>({8, 8}), 0.5F)})[1];
}

tensorflow::RunMetadata metadata_of(const Program& program, const Output& fetch,
                                    bool with_memory) {
  auto session = Session::create({}).value();
  REQUIRE(session->extend(program.graph).ok());
  Trace trace;
  OutputRecorder outputs;
  RunOptions run;
  run.trace = &trace;
  if (with_memory) run.observer = &outputs;
  REQUIRE(session->run({}, {fetch.name()}, {}, run).ok());
  tensorflow::RunMetadata metadata;
  REQUIRE(metadata.ParseFromString(
      run_metadata(trace, with_memory ? &outputs : nullptr)));
  return metadata;
}

}  // namespace

TEST_CASE("what a writer is told is in its file") {
  const testing::TempFolder folder("summaries");
  const std::string run = folder.path() / "run";
  auto opened = SummaryWriter::open(run);
  REQUIRE(opened.ok());
  SummaryWriter& writer = **opened;
  const Program program;
  three_products(program.s);
  CHECK(writer.graph(program.graph).ok());
  CHECK(writer.scalar("loss", 0.5, 3).ok());
  CHECK(writer.histogram("w", Tensor::vector<float>({1, 2, 2}), 3).ok());
  CHECK(writer.pictures("p", Tensor::make(DataType::kUInt8, {2, 3, 4, 1}), 3)
            .ok());
  CHECK(
      writer.sounds("a", Tensor::make(DataType::kFloat, {1, 5}), 8000, 3).ok());
  CHECK(writer.text("t", "*hello*", 3).ok());
  CHECK(writer.summary("\n\x08\n\x01q\x15\0\0\xc0?", 4).code() ==
        Code::kDataLoss);
  CHECK(writer.run_metadata("step 3", "bytes", 3).ok());
  CHECK(writer.resume(9).ok());
  CHECK(writer.close().ok());
  CHECK(writer.scalar("loss", 0.5, 4).code() == Code::kFailedPrecondition);

  const auto events = checkpoint::events_of_folder(run);
  REQUIRE(events.ok());
  REQUIRE(events->size() == 9);
  const auto& all = *events;
  const auto value = [&](size_t i) { return all[i].summary().value(0); };
  CHECK(all[0].file_version() == "brain.Event:2");
  CHECK(all[1].graph_def() == graph::write_graphdef(program.graph).value());
  CHECK(value(2).tag() == "loss");
  CHECK(value(2).simple_value() == 0.5F);
  CHECK(all[2].step() == 3);
  CHECK(value(3).histo().num() == 3);
  CHECK(all[4].summary().value_size() == 2);
  CHECK(value(4).image().width() == 4);
  CHECK(value(5).audio().length_frames() == 5);
  CHECK(value(6).metadata().plugin_data().plugin_name() == "text");
  CHECK(value(6).tensor().string_val(0) == "*hello*");
  CHECK(all[7].tagged_run_metadata().tag() == "step 3");
  CHECK(all[8].session_log().status() == tensorflow::SessionLog::START);
}

TEST_CASE("errors of a writer say what does not fit") {
  const testing::TempFolder folder("summaries");
  auto writer = SummaryWriter::open(folder.path()).value();
  CHECK(writer->histogram("w", Tensor::scalar(NAN), 1).message() ==
        "[events] NaN at element 0: a histogram has finite values only");
  CHECK(writer->pictures("p", Tensor::scalar(1.0F), 1).code() ==
        Code::kInvalidArgument);
  CHECK(!SummaryWriter::open("/proc/nowhere/run").ok());
}

TEST_CASE("a node of a loop has one entry, with the time of all iterations") {
  const Program program;
  const Output last = three_products(program.s);
  REQUIRE(program.s.ok());
  const auto metadata = metadata_of(program, last, /*with_memory=*/true);
  REQUIRE(metadata.step_stats().dev_stats_size() == 1);
  const auto& device = metadata.step_stats().dev_stats(0);
  CHECK(device.device().ends_with("/device:CPU:0"));
  int products = 0;
  for (const auto& node : device.node_stats()) {
    CHECK(node.all_end_rel_micros() >= 1);
    CHECK(node.all_start_micros() > 1'000'000'000'000'000);
    if (!node.node_name().ends_with("product")) continue;
    ++products;
    CHECK(node.timeline_label().ends_with("MatMul, 3 times"));
    REQUIRE(node.memory_size() == 1);
    CHECK(node.memory(0).total_bytes() == 3 * 8 * 8 * 4);
    CHECK(node.memory(0).peak_bytes() == 8 * 8 * 4);
    REQUIRE(node.output_size() == 1);
    CHECK(node.output(0).tensor_description().shape().dim_size() == 2);
  }
  CHECK(products == 1);
  const auto times = metadata_of(program, last, /*with_memory=*/false);
  for (const auto& node : times.step_stats().dev_stats(0).node_stats())
    CHECK(node.memory_size() == 0);
}
