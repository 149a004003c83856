// Launches on an accelerator, and waits for their answers.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/stream/stream_device.h"
#include "graph/graph.h"

namespace tagflow::devices {

inline graph::DeviceInfo stream_info(int id = 0) {
  graph::DeviceInfo info;
  info.name = {"localhost", 0, 0, "STREAM", id};
  return info;
}

// A kernel that does what a test says.
class TestKernel : public Kernel {
 public:
  using Body = std::function<Status(KernelContext&)>;
  explicit TestKernel(Body body) : body_(std::move(body)) {}
  Status compute(KernelContext& context) const override {
    return body_(context);
  }

 private:
  const Body body_;
};

// One launch of a node over placeholders, and all it needs until it is
// answered, which its destructor waits for.
class Launch {
 public:
  // The op's own kernel for a type of device.
  Launch(std::string_view op, std::vector<Tensor> values, AttrMap attrs = {},
         std::string_view type = "STREAM")
      : inputs(std::move(values)) {
    build(op, std::move(attrs));
    auto made = KernelRegistry::global().make(*node, type);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    kernel_ = std::move(*made);
  }
  // A node "op" of one input and one output, or of none, whose kernel is
  // `body`.
  Launch(TestKernel::Body body, std::vector<Tensor> values = {})
      : inputs(std::move(values)),
        kernel_(std::make_unique<TestKernel>(std::move(body))) {
    build(inputs.empty() ? "NoOp" : "Identity", {});
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    if (started_) answered_.wait();
  }

  // Makes the context anew, for who launches it without on().
  void prepare() {
    context.emplace(node, inputs, outputs, &step, &tag_);
    step.cancelled = &cancelled;
  }
  const Kernel& kernel() const { return *kernel_; }

  Launch& on(Accelerator& accelerator) {
    prepare();
    answered_ = promise_.get_future().share();
    started_ = true;
    accelerator.launch(*kernel_, *context, [this](Status status) {
      if (then) then(status);
      promise_.set_value(std::move(status));
    });
    return *this;
  }
  Status answer() { return answered_.get(); }
  // The first output, of a launch that must succeed.
  Tensor output() {
    const Status status = answer();
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    return outputs.at(0);
  }

  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  graph::Node* node = nullptr;
  std::atomic<bool> cancelled{false};
  StepInfo step;
  std::optional<KernelContext> context;
  std::function<void(const Status&)> then;  // called before the answer is seen

 private:
  void build(std::string_view op, AttrMap attrs) {
    std::vector<graph::Endpoint> endpoints;
    for (const Tensor& input : inputs) {
      auto placeholder = graph_.add(graph_.unique_name("input"), "Placeholder",
                                    {}, {{"dtype", input.dtype()}});
      REQUIRE(placeholder.ok());
      endpoints.push_back({*placeholder, 0});
    }
    auto made = graph_.add("op", op, endpoints, std::move(attrs));
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    node = *made;
    outputs.resize(size_t(node->num_outputs()));
  }

  graph::Graph graph_;
  std::unique_ptr<Kernel> kernel_;
  Tag tag_;
  std::promise<Status> promise_;
  std::shared_future<Status> answered_;
  bool started_ = false;
};

// What a copy answers.
class Copy {
 public:
  Accelerator::Copied callback() {
    return [this](Result<Tensor> result) {
      promise_.set_value(std::move(result));
    };
  }
  Result<Tensor> answer() { return promise_.get_future().get(); }

 private:
  std::promise<Result<Tensor>> promise_;
};

inline Result<Tensor> to_host(Accelerator& accelerator, Tensor tensor) {
  Copy copy;
  accelerator.copy_to_host(std::move(tensor), copy.callback());
  return copy.answer();
}

inline Result<Tensor> to_device(Accelerator& accelerator, Tensor tensor) {
  Copy copy;
  accelerator.copy_from_host(std::move(tensor), copy.callback());
  return copy.answer();
}

// Holds up who waits until it is opened.
class Gate {
 public:
  void open() { promise_.set_value(); }
  void wait() const { opened_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

// A float vector, too long to be held inline.
inline Tensor floats(int64_t count, float first = 0) {
  Tensor tensor = Tensor::make(DataType::kFloat, {count});
  for (int64_t i = 0; i < count; ++i)
    tensor.mutable_data<float>()[i] = first + float(i);
  return tensor;
}

}  // namespace tagflow::devices
