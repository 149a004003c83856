// _HoldShard, _WriteShard, _ReadShards: a process writes its part of a
// checkpoint, and reads it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_shard.h"
#include "devices/files/host_access.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/file/read_outputs.h"
#include "devices/state/resource_op.h"
#include "devices/state/shard_writer.h"
#include "graph/fault.h"

namespace tagflow::devices {

namespace {

template <class T>
Result<T> scalar_input(const KernelContext& context, int input,
                       std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.num_elements() == 1) return tensor.flat<T>()[0];
  return invalid_argument("{} must be one value, not {}", name,
                          tensor.describe());
}

Result<int64_t> save_input(const KernelContext& context) {
  TAGFLOW_ASSIGN(const int64_t save, scalar_input<int64_t>(context, 0, "save"));
  if (save > 0) return save;
  return invalid_argument("{} is not the number of a save", save);
}

class HoldShardKernel final : public CheapKernel {
 public:
  explicit HoldShardKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    return hold(context).with_prefix("[_HoldShard] ");
  }

 private:
  static Status hold(KernelContext& context) {
    TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
    TAGFLOW_ASSIGN(const int64_t save, save_input(context));
    TAGFLOW_ASSIGN(
        const Ref<StateObject> object,
        state->find_or_make(
            ShardWriter::key(), []() -> Result<Ref<StateObject>> {
              return Ref<StateObject>(make_ref_counted<ShardWriter>());
            }));
    const auto values = context.inputs().subspan(1);
    static_cast<ShardWriter&>(*object).hold(save,
                                            {values.begin(), values.end()});
    return {};
  }
};

// The wait of a step for its shard. The file is written whether the step waits
// or not; it stays only if the step has waited until its end.
class ShardWrite final : public CancelHook, public ShardWriter::Job {
 public:
  ShardWrite(KernelContext& context, Completion done, std::string path,
             int64_t save, std::vector<Tensor> tensors, bool syncs)
      : context_(context),
        done_(std::move(done)),
        path_(std::move(path)),
        save_(save),
        tensors_(std::move(tensors)),
        options_{.files = nullptr, .sync = syncs, .makes_folders = false} {
    const auto keys = context.input(2).flat<std::string>();
    keys_.assign(keys.begin(), keys.end());
  }

  void run() override {
    auto written = guarded("checkpoint", [this] {
      return checkpoint::write_shard(path_, uint64_t(save_), keys_, tensors_,
                                     stopped(), options_);
    });
    tensors_.clear();
    Result<std::string> index =
        written.ok() ? guarded("checkpoint", [&] { return index_of(*written); })
                     : Result<std::string>(written.status());
    if (!claim()) {
      return;  // removes the file
    }
    Status status = index.status();
    if (index.ok())
      status = guarded("checkpoint", [&] {
        context_.set_output(0, Tensor::scalar(*std::move(index)));
        context_.set_output(1, Tensor::scalar(int64_t(written->size)));
        context_.set_output(2, Tensor::scalar(int64_t(written->checksum)));
        written->file->leave();
      });
    answer(std::move(status));
  }

  // REQUIRES: it is claimed.
  void answer(Status status) const {
    done_(std::move(status).with_prefix("[_WriteShard] "));
  }

 protected:
  void on_cancel() override {
    stop();
    answer(error(Code::kCancelled, "the step is over"));
  }

 private:
  static Result<std::string> index_of(checkpoint::WrittenShard& written) {
    checkpoint::BundleIndex index;
    const auto place = checkpoint::parse_data_path(written.file->target());
    if (place) index.num_shards = place->num_shards;
    index.entries = std::move(written.entries);
    std::ranges::sort(index.entries, {}, &checkpoint::BundleEntry::key);
    return checkpoint::format_bundle_index(index);
  }

  KernelContext& context_;  // until done_ is called
  const Completion done_;
  const std::string path_;
  const int64_t save_;
  std::vector<std::string> keys_;
  std::vector<Tensor> tensors_;
  const checkpoint::WriteOptions options_;
};

class WriteShardKernel final : public AsyncKernel {
 public:
  explicit WriteShardKernel(const KernelInfo&) {}

  void compute_async(KernelContext& context, Completion done) const override {
    if (Status status = start(context, done); !status.ok())
      done(std::move(status).with_prefix("[_WriteShard] "));
  }
  std::string describe_wait(const KernelContext& context) const override {
    const auto path = scalar_input<std::string>(context, 1, "path");
    return fmt::format("the shard {:?}", path.ok() ? *path : "");
  }

 private:
  // An error has not been answered.
  static Status start(KernelContext& context, const Completion& done) {
    TAGFLOW_ASSIGN(const ResourceManager* state, state_of(context));
    TAGFLOW_ASSIGN(const int64_t save, save_input(context));
    TAGFLOW_ASSIGN(const std::string path,
                   scalar_input<std::string>(context, 1, "path"));
    TAGFLOW_ASSIGN(const bool syncs, scalar_input<bool>(context, 3, "sync"));
    const Ref<StateObject> object = state->find(ShardWriter::key());
    auto* const writer = dynamic_cast<ShardWriter*>(object.get());
    if (writer == nullptr)
      return error(Code::kNotFound,
                   "[checkpoint] nothing is held for the save {}", save);
    // Whatever fails from here on, nothing is held any more.
    TAGFLOW_ASSIGN(std::vector<Tensor> tensors, writer->take(save));
    if (!checkpoint::parse_data_path(path))
      return invalid_argument("[checkpoint] {:?} is not the name of a shard",
                              path);
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(std::string found, host->shard_to_write(path));
    const auto write = std::make_shared<ShardWrite>(
        context, done, std::move(found), save, std::move(tensors), syncs);
    if (!context.on_cancel(write))
      return error(Code::kCancelled, "the step was cancelled");
    Status started = writer->start(write);
    if (!started.ok() && write->claim()) write->answer(std::move(started));
    return {};
  }
};

// Tensors of a bundle that the process which restores has found. It gives the
// places and checksums; they are checked as those of an index in a file are.
class ReadShardsKernel final : public Kernel {
 public:
  explicit ReadShardsKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return read(context).with_prefix("[_ReadShards] ");
  }
  double cost(const KernelContext&) const override { return kFileNanoseconds; }

 private:
  static Status read(KernelContext& context) {
    TAGFLOW_ASSIGN(std::string prefix,
                   scalar_input<std::string>(context, 0, "prefix"));
    TAGFLOW_ASSIGN(const std::string bytes,
                   scalar_input<std::string>(context, 2, "index"));
    const auto keys = context.input(1).flat<std::string>();
    if (keys.size() != size_t(context.num_outputs()))
      return invalid_argument("{} keys for {} tensors", keys.size(),
                              context.num_outputs());
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(checkpoint::BundleIndex index,
                   checkpoint::parse_bundle_index(
                       bytes, fmt::format("the index of {:?}", prefix)));
    const auto reader = checkpoint::BundleReader::of_index(
        std::move(prefix), std::move(index), host->shards_to_read());
    double size = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      TAGFLOW_ASSIGN(const checkpoint::BundleEntry* entry,
                     reader->find_tensor(keys[i]));
      const DataType wanted = context.node().output_dtypes()[i];
      if (entry->dtype != int(wanted))
        return invalid_argument("tensor {:?} is of {}, not of {}", keys[i],
                                entry->dtype_text(), dtype_name(wanted));
      size += double(entry->size);
    }
    return read_outputs(context, size, [&](int i) {
      return reader->read(keys[size_t(i)], context.allocator());
    });
  }
};

}  // namespace

void register_shard_kernels(KernelRegistry& registry) {
  registry.add<HoldShardKernel>("_HoldShard");
  registry.add<WriteShardKernel>("_WriteShard");
  registry.add<ReadShardsKernel>("_ReadShards");
}

}  // namespace tagflow::devices
