#include "devices/state/resource_op.h"

#include <vector>

#include "devices/state/saved_contents.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {
namespace {

std::string text_attr(const AttrMap& attrs, std::string_view name) {
  const auto it = attrs.find(name);
  const auto* text =
      it == attrs.end() ? nullptr : it->second.get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

ResourceKey key_of(std::string_view op, const std::string& node,
                   const AttrMap& attrs) {
  std::string name = text_attr(attrs, "shared_name");
  if (name.empty()) name = node;
  return {text_attr(attrs, "container"), std::string(kind_of(op)),
          std::move(name)};
}

Status restore_contents(const KernelContext& context, StateObject& made,
                        const Tensor& saved) {
  TAGFLOW_ASSIGN(const std::vector<Tensor> contents,
                 unpack_contents(context, saved));
  auto* const object = dynamic_cast<SavedContents*>(&made);
  return object == nullptr ? damaged_contents(context)
                           : object->restore(context, contents);
}

}  // namespace

ResourceKey resource_key(const graph::Node& node) {
  return key_of(node.op(), node.name(), node.attrs());
}

ResourceKey resource_key(const graph::NodeDef& node) {
  return key_of(node.op, node.name, node.attrs);
}

bool makes_resource(const graph::Node& node) {
  if (!node.op_def().is_stateful || node.num_outputs() != 1) return false;
  const DataType type = node.output_dtypes()[0];
  return (is_ref(type) || type == DataType::kResource) &&
         node.attrs().contains("shared_name") &&
         text_attr(node.attrs(), "shared_name") != kAnonymousName;
}

ResourceOp::ResourceOp(const KernelInfo& info)
    : key_(resource_key(info.node())),
      is_anonymous_(key_.name == kAnonymousName ||
                    info.node().op().starts_with("Anonymous")) {}

Result<ResourceManager*> state_of(const KernelContext& context) {
  if (context.step().state != nullptr) return context.step().state;
  return error(Code::kFailedPrecondition,
               "[{}] there is no session to keep its state",
               context.node().op());
}

Result<Ref<StateObject>> ResourceOp::find_or_make(
    const KernelContext& context, const ResourceManager::Make& make) const {
  if (is_anonymous_) {
    // About what the largest kinds take, as allocated.
    constexpr size_t kObjectBytes = 1536;
    TAGFLOW_ASSIGN(Ref<StateObject> made, make());
    MemoryCharge charge;
    TAGFLOW_RETURN_IF_ERROR(
        context.count(charge, kObjectBytes, [&] { return made->describe(); }));
    made->count_as(std::move(charge));
    return made;
  }
  TAGFLOW_ASSIGN(ResourceManager* const manager, state_of(context));
  std::lock_guard lock(mutex_);
  if (!known_ || manager_ != manager || known_->has_ended()) {
    TAGFLOW_ASSIGN(
        known_,
        manager->find_or_make(key_, make, [&](auto& made, const Tensor& saved) {
          return restore_contents(context, made, saved);
        }));
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
