#include <filesystem>
#include <system_error>

#include "devices/files/bundle_merge.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/host_access.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/file/read_outputs.h"

namespace tagflow::devices {

namespace {

using checkpoint::BundleEntry;
using checkpoint::BundleMerge;
using checkpoint::BundleReader;
using checkpoint::BundleWriter;
using checkpoint::ShapeAndSlice;

Result<std::string> text_input(const KernelContext& context, int input,
                               std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.num_elements() == 1) return tensor.data<std::string>()[0];
  return context.fail("{} must be one string, not {}", name, tensor.describe());
}

// If the step has been answered, nothing is published.
Status too_late(const KernelContext& context) {
  return error(Code::kCancelled, "[{}] the step is over", context.node().op());
}

Status of_op(const KernelContext& context, Status status) {
  return std::move(status).with_prefix(
      fmt::format("[{}] ", context.node().op()));
}

// The names and slices, one for each tensor.
struct SavedNames {
  std::string prefix;
  std::span<const std::string> names, specs;
};
Result<SavedNames> read_names(const KernelContext& context, int tensors) {
  SavedNames saved;
  TAGFLOW_ASSIGN(saved.prefix, text_input(context, 0, "prefix"));
  saved.names = context.input(1).flat<std::string>();
  saved.specs = context.input(2).flat<std::string>();
  if (saved.names.size() == size_t(tensors) &&
      saved.specs.size() == size_t(tensors))
    return saved;
  return context.fail("{} tensor_names and {} shape_and_slices for {} tensors",
                      saved.names.size(), saved.specs.size(), tensors);
}

Result<ShapeAndSlice> slice_of(const KernelContext& context,
                               std::string_view name, std::string_view spec) {
  auto slice = checkpoint::parse_shape_and_slice(spec);
  if (slice.ok()) return slice;
  return context.fail("tensor {:?}: {}", name, slice.status().message());
}

class SaveKernel final : public Kernel {
 public:
  explicit SaveKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return of_op(context, save(context));
  }

  double cost(const KernelContext&) const override { return kFileNanoseconds; }

 private:
  static Status save(const KernelContext& context) {
    constexpr int kFirstTensor = 3;
    const int tensors = context.num_inputs() - kFirstTensor;
    TAGFLOW_ASSIGN(const SavedNames saved, read_names(context, tensors));
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(std::string prefix, host->name_to_write(saved.prefix));
    TAGFLOW_ASSIGN(const auto writer, BundleWriter::create(std::move(prefix), 1,
                                                           {&host->files()}));
    for (int i = 0; i < tensors; ++i) {
      if (context.cancelled()) return too_late(context);
      const Tensor& tensor = context.input(kFirstTensor + i);
      const std::string& name = saved.names[size_t(i)];
      const std::string& spec = saved.specs[size_t(i)];
      if (spec.empty()) {
        TAGFLOW_RETURN_IF_ERROR(writer->add(name, tensor));
        continue;
      }
      TAGFLOW_ASSIGN(const ShapeAndSlice part, slice_of(context, name, spec));
      TAGFLOW_RETURN_IF_ERROR(
          writer->add_slice(name, part.shape, part.slice, tensor));
    }
    TAGFLOW_RETURN_IF_ERROR(writer->finish());
    const Commit commit = context.commit();
    return commit ? writer->publish() : too_late(context);
  }
};

class RestoreKernel final : public Kernel {
 public:
  explicit RestoreKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return of_op(context, restore(context));
  }

  double cost(const KernelContext&) const override { return kFileNanoseconds; }

 private:
  static Status restore(KernelContext& context) {
    const int tensors = context.num_outputs();
    TAGFLOW_ASSIGN(const SavedNames saved, read_names(context, tensors));
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_RETURN_IF_ERROR(
        host->path_to_read(checkpoint::index_path(saved.prefix)).status());
    TAGFLOW_ASSIGN(const auto reader,
                   BundleReader::open(saved.prefix, host->files()));
    // All errors are reported before anything is read.
    double bytes = 0;
    for (int i = 0; i < tensors; ++i)
      TAGFLOW_RETURN_IF_ERROR(check(context, *reader, saved, i, bytes));
    return read_outputs(context, bytes, [&](int i) {
      return read(context, *reader, saved, i);
    });
  }

  // Checks that the tensor exists, and has the type that the node declares.
  static Status check(const KernelContext& context, const BundleReader& reader,
                      const SavedNames& saved, int i, double& bytes) {
    const std::string& name = saved.names[size_t(i)];
    TAGFLOW_ASSIGN(const BundleEntry* entry, reader.find_tensor(name));
    const DataType wanted = context.node().output_dtypes()[size_t(i)];
    if (entry->dtype != int(wanted))
      return context.fail("tensor {:?} of \"{}\" is {}{}, not {}", name,
                          saved.prefix, entry->dtype_text(),
                          entry->shape.to_string(), dtype_name(wanted));
    bytes += double(entry->size);
    if (saved.specs[size_t(i)].empty()) return {};
    TAGFLOW_ASSIGN(const ShapeAndSlice part,
                   slice_of(context, name, saved.specs[size_t(i)]));
    if (part.shape == entry->shape) return {};
    return context.fail(
        "tensor {:?} of \"{}\" is of shape {}, not {} as in \"{}\"", name,
        saved.prefix, entry->shape.to_string(), part.shape.to_string(),
        saved.specs[size_t(i)]);
  }

  static Result<Tensor> read(KernelContext& context, const BundleReader& reader,
                             const SavedNames& saved, int i) {
    const std::string& name = saved.names[size_t(i)];
    const std::string& spec = saved.specs[size_t(i)];
    if (spec.empty()) return reader.read(name, context.allocator());
    TAGFLOW_ASSIGN(const ShapeAndSlice part, slice_of(context, name, spec));
    return reader.read_slice(name, part.slice, context.allocator());
  }
};

class MergeKernel final : public Kernel {
 public:
  explicit MergeKernel(const KernelInfo& info) {
    const auto deletes = info.attr<bool>("delete_old_dirs");
    const auto allows = info.attr<bool>("allow_missing_files");
    deletes_ = deletes.ok() && *deletes;
    allows_missing_ = allows.ok() && *allows;
  }

  Status compute(KernelContext& context) const override {
    return of_op(context, merge(context));
  }

  double cost(const KernelContext&) const override { return kFileNanoseconds; }

 private:
  Status merge(const KernelContext& context) const {
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    std::vector<std::string> sources;
    for (const std::string& source : context.input(0).flat<std::string>()) {
      TAGFLOW_ASSIGN(sources.emplace_back(), host->name_to_write(source));
    }
    TAGFLOW_ASSIGN(std::string target,
                   text_input(context, 1, "destination_prefix"));
    TAGFLOW_ASSIGN(target, host->name_to_write(target));
    TAGFLOW_ASSIGN(BundleMerge merge,
                   BundleMerge::prepare(sources, target,
                                        {{&host->files()}, allows_missing_}));
    const Commit commit = context.commit();
    if (!commit) return too_late(context);
    TAGFLOW_RETURN_IF_ERROR(merge.publish());
    if (!deletes_) return {};
    const std::string folder = checkpoint::folder_of(target);
    for (const std::string& source : sources) {
      // Removes folders that are empty now; others silently stay.
      std::error_code ignored;
      if (const std::string old = checkpoint::folder_of(source); old != folder)
        std::filesystem::remove(old, ignored);
    }
    return {};
  }

  bool deletes_ = true;
  bool allows_missing_ = false;
};

// "BASE-00003-of-00012"; in the spec, question marks replace the shard.
class ShardedNameKernel final : public CheapKernel {
 public:
  explicit ShardedNameKernel(const KernelInfo& info)
      : is_spec_(info.num_inputs() == 2) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const std::string base, text_input(context, 0, "basename"));
    for (int i = 1; i < context.num_inputs(); ++i)
      if (context.input(i).num_elements() != 1)
        return context.fail("input {} must be one number, not {}", i,
                            context.input(i).describe());
    const int32_t count =
        context.input(context.num_inputs() - 1).scalar_value<int32_t>();
    const std::string shard =
        is_spec_
            ? "?????"
            : fmt::format("{:05}", context.input(1).scalar_value<int32_t>());
    context.set_output(
        0, Tensor::scalar(fmt::format("{}-{}-of-{:05}", base, shard, count)));
    return {};
  }

 private:
  const bool is_spec_;
};

// Ops of the format V1.
class RefusedKernel final : public CheapKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return error(Code::kUnimplemented,
                 "[{}] node \"{}\": V1 checkpoints are neither read nor "
                 "written; use SaveV2 and RestoreV2",
                 info.node().op(), info.name());
  }
  Status compute(KernelContext& context) const override {
    return context.fail("V1 checkpoints are neither read nor written");
  }
};

}  // namespace

void register_checkpoint_kernels(KernelRegistry& registry) {
  registry.add<SaveKernel>("SaveV2");
  registry.add<RestoreKernel>("RestoreV2");
  registry.add<MergeKernel>("MergeV2Checkpoints");
  registry.add<ShardedNameKernel>("ShardedFilename");
  registry.add<ShardedNameKernel>("ShardedFilespec");
  for (const char* op : {"Save", "SaveSlices", "Restore", "RestoreSlice"})
    registry.add<RefusedKernel>(op);
}

}  // namespace tagflow::devices
