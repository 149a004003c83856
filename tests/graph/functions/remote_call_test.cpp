#include "graph/functions/remote_call.h"

#include "graph/device_name.h"
#include "tests/graph/functions/lowered.h"

namespace tagflow::graph {

using namespace testing;

namespace {

constexpr char kTarget[] = "/job:worker/task:1/device:CPU:0";

NodeDef target(const std::string& name, const std::string& device) {
  return body_const(name, Tensor::scalar(device));
}

NodeDef remote_call(const std::string& name, const std::string& target,
                    const std::string& function, const std::string& arg) {
  return body_node(name, "RemoteCall", {target, arg},
                   int_ports(1, 1, {{"f", call_of(function)}}));
}

}  // namespace

TEST_CASE("the nodes of a RemoteCall's function are placed on its target") {
  Lowered l;
  l.define(doubled());
  NodeDef call = remote_call("y", "device", "doubled", "x");
  call.device = "/job:worker/task:0";
  l.expect_lowered({placeholder("x"), target("device", kTarget), call}, "y");
  CHECK(l.node("y/plus").device() == kTarget);
  CHECK(l.node("x").device().empty());
}

TEST_CASE("a RemoteCall without the name of a device stays where it is") {
  Lowered l;
  l.define(doubled());
  NodeDef call = remote_call("y", "device", "doubled", "x");
  call.device = "/job:worker/task:0";
  l.expect_lowered({placeholder("x"), target("device", ""), call}, "y");
  CHECK(l.node("y/plus").device() == "/job:worker/task:0");
}

TEST_CASE("the target of a RemoteCall may be an argument of a function") {
  Lowered l;
  l.define(doubled());
  l.define(function("at", {"device: string", "n: int32"}, {"r: int32"},
                    {remote_call("there", "device", "doubled", "n"),
                     body_int("here", "Add", "there:output:0", "n")},
                    {{"r", "here:z:0"}}));
  l.expect_lowered({placeholder("x"), target("device", kTarget),
                    body_node("y", "at", {"device", "x"})},
                   "y");
  CHECK(l.node("y/there/plus").device() == kTarget);
  CHECK(l.node("y/here").device().empty());
}

TEST_CASE("a RemoteCall whose target is not a constant is refused") {
  Lowered l;
  l.define(doubled());
  l.expect_refused({placeholder("x"), placeholder("device", DataType::kString),
                    remote_call("y", "device", "doubled", "x")},
                   Code::kUnimplemented,
                   "[RemoteCall] node \"y\": the target \"device:0\" is not a "
                   "constant, so the call cannot be placed before the graph "
                   "runs");
}

TEST_CASE("a RemoteCall whose target is not a device is refused") {
  for (const auto& [value, message] :
       {std::pair{Tensor::scalar("/place:1"),
                  DeviceName::parse("/place:1").status()},
        std::pair{Tensor::vector<std::string>({"", ""}),
                  invalid_argument("the target is string[2], not a scalar")}}) {
    Lowered l;
    l.define(doubled());
    l.expect_refused(
        {placeholder("x"), body_const("device", value),
         remote_call("y", "device", "doubled", "x")},
        Code::kInvalidArgument,
        "[RemoteCall] node \"y\": " + std::string(message.message()));
  }
}

}  // namespace tagflow::graph
