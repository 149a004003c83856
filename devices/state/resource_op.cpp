#include "devices/state/resource_op.h"

namespace tagflow::devices {
namespace {

std::string text_attr(const graph::Node& node, std::string_view name) {
  Result<std::string> text = node.attr<std::string>(name);
  return text.ok() ? *std::move(text) : std::string();
}

}  // namespace

ResourceKey resource_key(const graph::Node& node, std::string_view kind) {
  std::string name = text_attr(node, "shared_name");
  if (name.empty()) name = node.name();
  return {text_attr(node, "container"), std::string(kind), std::move(name)};
}

ResourceOp::ResourceOp(const KernelInfo& info, std::string_view kind)
    : key_(resource_key(info.node(), kind)),
      is_anonymous_(key_.name == kAnonymousName) {}

Result<Ref<StateObject>> ResourceOp::find_or_make(
    const KernelContext& context, const ResourceManager::Make& make) const {
  if (is_anonymous_) return make();
  ResourceManager* const manager = context.step().state;
  if (manager == nullptr)
    return error(Code::kFailedPrecondition,
                 "[{}] there is no session whose state it could be in",
                 context.node().op());
  std::lock_guard lock(mutex_);
  if (!known_ || manager_ != manager || known_->has_ended()) {
    TAGFLOW_ASSIGN(known_, manager->find_or_make(key_, make));
    manager_ = manager;
  }
  return known_;
}

Status ResourceOp::set_handle(KernelContext& context,
                              const ResourceManager::Make& make) const {
  TAGFLOW_ASSIGN(Ref<StateObject> object, find_or_make(context, make));
  TAGFLOW_ASSIGN(Tensor handle, Tensor::allocate(DataType::kResource, {}));
  *handle.mutable_data<ResourceHandle>() =
      ResourceHandle(Ref<Resource>(std::move(object)));
  context.set_output(0, std::move(handle));
  return {};
}

}  // namespace tagflow::devices
