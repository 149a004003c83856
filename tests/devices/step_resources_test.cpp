#include "devices/step_resources.h"

#include <doctest/doctest.h>
#include <malloc.h>

using namespace tagflow;
using namespace tagflow::devices;

namespace {

// Counts how many of it are alive, and holds a value.
class CountedObject final : public StepObject {
 public:
  explicit CountedObject(int& alive) : alive_(alive) { ++alive_; }
  ~CountedObject() override { --alive_; }
  std::string describe() const override { return "counted object"; }
  void end() override {
    ended = true;
    held = Tensor();
  }
  bool ended = false;
  Tensor held;

 private:
  int& alive_;
};

class OtherObject final : public StepObject {
 public:
  std::string describe() const override { return "other object"; }
  void end() override {}
};

Tensor handle_tensor(ResourceHandle handle) {
  Tensor tensor = Tensor::make(DataType::kResource, {});
  *tensor.mutable_data<ResourceHandle>() = std::move(handle);
  return tensor;
}

}  // namespace

TEST_CASE("an object of a step lives as long as a handle to it") {
  int alive = 0;
  StepResources resources;
  ResourceHandle handle = resources.make<CountedObject>(alive);
  CHECK(resources.alive() == 1);
  CHECK(handle.get()->describe() == "counted object");
  const ResourceHandle copy = handle;
  handle = ResourceHandle();
  CHECK(alive == 1);
  CHECK_FALSE(step_object<CountedObject>(copy)->ended);
  resources.end();
  CHECK(step_object<CountedObject>(copy)->ended);
  CHECK(alive == 1);
  // The next step does not count it.
  CHECK(resources.alive() == 0);
}

TEST_CASE("a handle is of the type that it was made with, or of none") {
  int alive = 0;
  StepResources resources;
  const ResourceHandle handle = resources.make<CountedObject>(alive);
  CHECK(step_object<CountedObject>(handle) != nullptr);
  CHECK(step_object<OtherObject>(handle) == nullptr);
  CHECK(step_object<OtherObject>(ResourceHandle()) == nullptr);
}

TEST_CASE("the end of a step frees an object that holds its own handle") {
  int alive = 0;
  StepResources resources;
  {
    ResourceHandle handle = resources.make<CountedObject>(alive);
    step_object<CountedObject>(handle)->held = handle_tensor(handle);
  }
  CHECK(alive == 1);
  CHECK(resources.alive() == 1);
  resources.end();
  CHECK(alive == 0);
  CHECK(resources.alive() == 0);
}

TEST_CASE("a step's end frees all objects though one of them throws") {
  class Throwing final : public StepObject {
   public:
    std::string describe() const override { return "throwing object"; }
    void end() override { throw 3; }
  };
  int alive = 0;
  StepResources resources;
  const ResourceHandle first = resources.make<Throwing>();
  const ResourceHandle second = resources.make<CountedObject>(alive);
  resources.end();
  CHECK(step_object<CountedObject>(second)->ended);
}

TEST_CASE("a step keeps no trace of objects that are gone") {
  int alive = 0;
  StepResources resources;
  const ResourceHandle first = resources.make<CountedObject>(alive);
  for (int i = 0; i < 10'000; ++i) {
    const ResourceHandle handle = resources.make<CountedObject>(alive);
    CHECK(alive == 2);
  }
  CHECK(resources.alive() == 1);
  resources.end();
  CHECK(step_object<CountedObject>(first)->ended);
}

// An object's memory is one with what refers to it weakly.
TEST_CASE("a step gives back the memory of an object before it ends") {
  class Large final : public StepObject {
   public:
    std::string describe() const override { return "large object"; }
    void end() override {}
    char contents[4096] = {};
  };
  StepResources resources;
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 10'000; ++i) resources.make<Large>();
  const size_t after = mallinfo2().uordblks;
  // Of 40 MB, those since the last time that the list had doubled.
  CHECK(after < before + (size_t(1) << 20));
}

TEST_CASE("a step's name keeps its object until the step ends") {
  int alive = 0;
  StepResources resources;
  CHECK(resources.add_name("a", resources.make<CountedObject>(alive)));
  CHECK_FALSE(resources.add_name("a", resources.make<OtherObject>()));
  CHECK(step_object<CountedObject>(resources.find("a")) != nullptr);
  CHECK(resources.find("b").get() == nullptr);
  CHECK(alive == 1);
  resources.end();
  CHECK(alive == 0);
  CHECK(resources.find("a").get() == nullptr);
  // The next step has its own.
  CHECK(resources.add_name("a", resources.make<OtherObject>()));
}
