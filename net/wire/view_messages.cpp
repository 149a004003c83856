#include "net/wire/view_messages.h"

#include "net/wire/fields.h"
#include "net/wire/lists.h"

namespace tagflow::net {
namespace {

using actors::StepView;

uint32_t read_count(Reader& reader) {
  return uint32_t(reader.varint_to(UINT32_MAX, "a count"));
}

int read_window(Reader& reader) {
  return int(reader.varint_to(INT32_MAX, "a number of iterations"));
}

StepView::Device read_device(Reader& reader) {
  StepView::Device device;
  device.name = read_text(reader);
  device.fired = reader.varint();
  device.dead = reader.varint();
  device.iterations = reader.varint();
  device.hops = reader.varint();
  return device;
}

StepView::Loop read_loop(Reader& reader) {
  StepView::Loop loop;
  loop.device = read_count(reader);
  loop.name = read_text(reader);
  loop.trips = reader.varint();
  loop.instances = reader.varint();
  return loop;
}

StepView::Node read_node(Reader& reader) {
  StepView::Node node;
  node.name = read_text(reader);
  node.op = read_text(reader);
  node.runs = reader.flag();
  node.missing = read_count(reader);
  return node;
}

StepView::Token read_token(Reader& reader) {
  StepView::Token token;
  token.node = read_text(reader);
  token.input = int(reader.varint_to(INT32_MAX, "an input")) - 1;
  token.value = read_text(reader);
  return token;
}

StepView::Iteration read_one_iteration(Reader& reader) {
  StepView::Iteration iteration;
  iteration.number = read_iteration(reader);
  iteration.is_stopped = reader.flag();
  iteration.fired = read_count(reader);
  iteration.waiting = read_count(reader);
  iteration.running = read_count(reader);
  iteration.untouched = read_count(reader);
  iteration.more_nodes = read_count(reader);
  iteration.more_tokens = read_count(reader);
  iteration.nodes = read_list<StepView::Node>(reader, 4, read_node);
  iteration.tokens = read_list<StepView::Token>(reader, 3, read_token);
  return iteration;
}

StepView::Frame read_frame(Reader& reader) {
  StepView::Frame frame;
  frame.parent = int(reader.varint_to(INT32_MAX, "a frame")) - 1;
  frame.device = read_count(reader);
  frame.name = read_text(reader);
  frame.tag = read_text(reader);
  frame.window = read_window(reader);
  frame.ring = read_window(reader);
  frame.more_iterations = read_count(reader);
  frame.iterations =
      read_list<StepView::Iteration>(reader, 10, read_one_iteration);
  return frame;
}

void write_iteration(Writer& writer, const StepView::Iteration& iteration) {
  writer.varint(uint64_t(iteration.number));
  writer.fixed(uint8_t(iteration.is_stopped));
  for (const uint64_t number :
       {uint64_t(iteration.fired), uint64_t(iteration.waiting),
        uint64_t(iteration.running), uint64_t(iteration.untouched),
        uint64_t(iteration.more_nodes), uint64_t(iteration.more_tokens)})
    writer.varint(number);
  write_list(writer, iteration.nodes, [&](const StepView::Node& node) {
    writer.text(node.name);
    writer.text(node.op);
    writer.fixed(uint8_t(node.runs));
    writer.varint(node.missing);
  });
  write_list(writer, iteration.tokens, [&](const StepView::Token& token) {
    writer.text(token.node);
    writer.varint(uint64_t(token.input + 1));
    writer.text(token.value);
  });
}

void write_view(Writer& writer, const StepView& view) {
  writer.fixed(uint8_t(view.is_stopped));
  write_list(writer, view.devices, [&](const StepView::Device& device) {
    writer.text(device.name);
    for (const uint64_t number :
         {device.fired, device.dead, device.iterations, device.hops})
      writer.varint(number);
  });
  write_list(writer, view.loops, [&](const StepView::Loop& loop) {
    writer.varint(loop.device);
    writer.text(loop.name);
    writer.varint(loop.trips);
    writer.varint(loop.instances);
  });
  write_list(writer, view.frames, [&](const StepView::Frame& frame) {
    writer.varint(uint64_t(frame.parent + 1));
    writer.varint(frame.device);
    writer.text(frame.name);
    writer.text(frame.tag);
    writer.varint(uint64_t(frame.window));
    writer.varint(uint64_t(frame.ring));
    writer.varint(frame.more_iterations);
    write_list(writer, frame.iterations,
               [&](const StepView::Iteration& iteration) {
                 write_iteration(writer, iteration);
               });
  });
  writer.varint(view.more_frames);
  write_texts(writer, view.waits);
  write_texts(writer, view.kernels);
}

StepView read_view(Reader& reader) {
  StepView view;
  view.is_stopped = reader.flag();
  view.devices = read_list<StepView::Device>(reader, 5, read_device);
  view.loops = read_list<StepView::Loop>(reader, 4, read_loop);
  view.frames = read_list<StepView::Frame>(reader, 8, read_frame);
  view.more_frames = read_count(reader);
  view.waits = read_texts(reader);
  view.kernels = read_texts(reader);
  for (const StepView::Loop& loop : view.loops)
    if (loop.device >= view.devices.size())
      reader.fail("a loop is on a device that is not named");
  for (size_t i = 0; i < view.frames.size(); ++i)
    if (view.frames[i].device >= view.devices.size() ||
        view.frames[i].parent >= int64_t(i))
      reader.fail("a frame is on a device, or in a frame, that is not named");
  return view;
}

}  // namespace

void Look::write(Writer& writer) const {
  writer.varint(step);
  writer.varint(request);
  writer.varint(patience_us);
}

Look Look::read(Reader& reader) {
  Look look;
  look.step = reader.varint();
  look.request = reader.varint();
  look.patience_us = reader.varint();
  return look;
}

void Steer::write(Writer& writer) const {
  writer.varint(step);
  writer.fixed(uint8_t(what));
  writer.text(frame);
  writer.varint(uint64_t(iteration));
}

Steer Steer::read(Reader& reader) {
  Steer steer;
  steer.step = reader.varint();
  const auto what = reader.fixed<uint8_t>();
  if (what > uint8_t(What::kNext))
    reader.fail(fmt::format("{} is not what a step may be told", what));
  steer.what = What(what);
  steer.frame = read_text(reader);
  steer.iteration = read_iteration(reader);
  return steer;
}

void Seen::write(Writer& writer) const {
  writer.varint(step);
  writer.varint(request);
  writer.fixed(uint8_t(has_view));
  if (has_view) write_view(writer, view);
}

Seen Seen::read(Reader& reader) {
  Seen seen;
  seen.step = reader.varint();
  seen.request = reader.varint();
  seen.has_view = reader.flag();
  if (seen.has_view) seen.view = read_view(reader);
  return seen;
}

}  // namespace tagflow::net
