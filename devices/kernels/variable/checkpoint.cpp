// The ops by which snapshots take and restore what a process has beside its
// variables: Note [Saved contents] in devices/state/saved_contents.h.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "devices/kernels/variable/state_inputs.h"
#include "devices/state/actor_kernel.h"
#include "devices/state/resource_op.h"
#include "devices/state/run_counts.h"
#include "devices/state/saved_contents.h"
#include "devices/state/shard_writer.h"
#include "devices/state/state_kind.h"
#include "devices/state/table.h"

namespace tagflow::devices {

namespace {

Result<RunCounts*> counts_of(const KernelContext& context) {
  if (auto* const run = dynamic_cast<NumberedRun*>(context.step().random_runs))
    return &run->counts();
  return error(Code::kFailedPrecondition,
               "[{}] there is no session that counts runs",
               context.node().op());
}

Tensor strings(const std::vector<std::string>& texts) {
  return Tensor::of<std::string>({int64_t(texts.size())}, texts);
}

// --- Contents ---------------------------------------------------------------

class ListStateKernel final : public CheapKernel {
 public:
  explicit ListStateKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const ResourceManager* state, state_of(context));
    std::vector<std::string> texts;
    state->for_each([&](const ResourceKey& key, StateObject& object) {
      // Variables have nodes of their own; a mutex has no contents, and what is
      // held for a shard is in a checkpoint already.
      if (key.kind == ShardWriter::kKind || key.kind == Variable::kKind ||
          key.kind == Variable::kReferenceKind || key.kind == kMutexKind ||
          object.has_ended())
        return;
      // One of the ops below can read it.
      const bool is_saved = dynamic_cast<SavedContents*>(&object) != nullptr;
      texts.insert(texts.end(),
                   {key.kind, key.container, key.name,
                    is_saved ? "" : "it is not of a kind that is saved"});
    });
    context.set_output(0, strings(texts));
    texts.clear();
    std::vector<int64_t> sizes;
    for (const Tensor& saved : state->left_to_restore()) {
      const auto all = saved.flat<std::string>();
      texts.insert(texts.end(), all.begin(), all.end());
      sizes.push_back(saved.num_elements());
    }
    context.set_output(1, strings(texts));
    context.set_output(2, numbers_tensor(sizes));
    return {};
  }
};

ResourceKey key_in(const KernelInfo& info) {
  return {attr_of<std::string>(info, "resource_container"),
          attr_of<std::string>(info, "kind"),
          attr_of<std::string>(info, "resource_name")};
}

class StateHandleKernel final : public CheapKernel {
 public:
  explicit StateHandleKernel(const KernelInfo& info) : key_(key_in(info)) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const ResourceManager* state, state_of(context));
    Ref<StateObject> object = state->find(key_);
    if (!object)
      return error(Code::kNotFound, "[{}] there is no {} any more",
                   context.node().op(), key_.describe());
    TAGFLOW_ASSIGN(Tensor * handle, context.allocate_output(0, {}));
    *handle->mutable_data<ResourceHandle>() =
        ResourceHandle(Ref<Resource>(std::move(object)));
    return {};
  }

 private:
  const ResourceKey key_;
};

// Sets the outputs to the contents of the object, and to why they cannot be
// saved.
Status save(KernelContext& context, const ResourceKey& key,
            const SavedContents& object) {
  auto contents = object.save();
  Result<Tensor> packed = contents.ok() ? pack_contents(key, *contents)
                                        : Result<Tensor>(contents.status());
  context.set_output(1, Tensor::scalar(std::string(
                            packed.ok() ? "" : packed.status().message())));
  context.set_output(0, packed.ok() ? *std::move(packed) : strings({}));
  return {};
}

class SaveActorKernel final : public ActorKernel {
 public:
  explicit SaveActorKernel(const KernelInfo& info) : key_(key_in(info)) {}
  Result<Ref<StateActor>> find(const KernelContext& context) const override {
    const Tensor& handle = context.input(0);
    if (handle.num_elements() == 1)
      if (Resource* const object = handle.data<ResourceHandle>()->get();
          dynamic_cast<SavedContents*>(object) != nullptr)
        if (auto* const actor = dynamic_cast<StateActor*>(object))
          return Ref<StateActor>(actor);
    return wrong_handle(context, 0, key_.kind);
  }
  bool changes_contents() const override { return false; }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    return save(context, key_, dynamic_cast<const SavedContents&>(actor));
  }

 private:
  const ResourceKey key_;
};

class SaveTableKernel final : public StateKernel {
 public:
  explicit SaveTableKernel(const KernelInfo& info) : key_(key_in(info)) {}
  // How large it is, only its lock tells.
  double cost(const KernelContext&) const override { return kHeavyNanoseconds; }
  Status claim(const KernelContext& context, StateClaim& claim) const override {
    TAGFLOW_ASSIGN(Table * table, handle_input<Table>(context, 0));
    claim.add(table->lock(), StateLock::Mode::kShared, *table);
    return {};
  }
  Status compute_held(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Table* table, handle_input<Table>(context, 0));
    return save(context, key_, *table);
  }

 private:
  const ResourceKey key_;
};

// Of an object that guards itself, as an iterator does.
class SaveObjectKernel final : public CheapKernel {
 public:
  explicit SaveObjectKernel(const KernelInfo& info) : key_(key_in(info)) {}
  Status compute(KernelContext& context) const override {
    const Tensor& handle = context.input(0);
    const Resource* const object = handle.num_elements() == 1
                                       ? handle.data<ResourceHandle>()->get()
                                       : nullptr;
    const auto* const contents = dynamic_cast<const SavedContents*>(object);
    if (contents == nullptr) return wrong_handle(context, 0, key_.kind);
    return save(context, key_, *contents);
  }

 private:
  const ResourceKey key_;
};

class RestoreStateKernel final : public UpdateKernel {
 public:
  explicit RestoreStateKernel(const KernelInfo&) {}
  double cost(const KernelContext&) const override { return 0; }
  Status claim(const KernelContext&, StateClaim&) const override { return {}; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
    TAGFLOW_ASSIGN(const ResourceKey key, packed_key(context.input(0)));
    state->restore_later(key, context.input(0));
    return {};
  }
};

// --- Counts -----------------------------------------------------------------

class RunCountsKernel final : public CheapKernel {
 public:
  explicit RunCountsKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const RunCounts* counts, counts_of(context));
    std::vector<std::string> nodes;
    std::vector<int64_t> runs;
    for (const auto& [node, count] : counts->all()) {
      nodes.push_back(node);
      runs.push_back(count);
    }
    context.set_output(0, strings(nodes));
    context.set_output(1, numbers_tensor(runs));
    return {};
  }
};

class RestoreRunCountsKernel final : public UpdateKernel {
 public:
  explicit RestoreRunCountsKernel(const KernelInfo&) {}
  double cost(const KernelContext& context) const override {
    constexpr double kPerName = 200;  // a node of a map
    return kPerName * double(context.input(0).num_elements());
  }
  Status claim(const KernelContext&, StateClaim&) const override { return {}; }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(RunCounts * counts, counts_of(context));
    const auto nodes = context.input(0).flat<std::string>();
    const auto runs = context.input(1).flat<int64_t>();
    if (nodes.size() != runs.size())
      return context.fail("there are {} nodes, but {} counts", nodes.size(),
                          runs.size());
    std::map<std::string, int64_t, std::less<>> all;
    for (size_t i = 0; i < nodes.size(); ++i) all.emplace(nodes[i], runs[i]);
    counts->restore(std::move(all));
    return {};
  }
};

}  // namespace

void register_checkpoint_state_kernels(KernelRegistry& registry) {
  registry.add<ListStateKernel>("_ListState");
  registry.add<StateHandleKernel>("_StateHandle");
  registry.add<SaveActorKernel>("_SaveActor");
  registry.add<SaveTableKernel>("_SaveTable");
  registry.add<SaveObjectKernel>("_SaveObject");
  registry.add<RestoreStateKernel>("_RestoreState");
  registry.add<RunCountsKernel>("_RunCounts");
  registry.add<RestoreRunCountsKernel>("_RestoreRunCounts");
}

}  // namespace tagflow::devices
